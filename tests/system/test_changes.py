"""What a runner changed is read from git's diff, whatever the files are called or contain."""

from agent_relay.system.git.snapshot import Change, ChangeKind, LineSpan, parse_changes

RAW = (
    b":100644 100644 1111 2222 M\0a b.txt\0"
    b":000000 100644 0000 3333 A\0new.txt\0"
    b":100644 000000 4444 0000 D\0gone.txt\0"
    b":000000 160000 0000 5555 A\0inner\0"
)
PATCH = b"""diff --git a/a b.txt b/a b.txt
index 1111..2222 100644
--- a/a b.txt\t
+++ b/a b.txt\t
@@ -3,2 +3 @@ def f():
-three
-four
+3
@@ -9,0 +9,2 @@
+--- a/not a head
+@@ -1 +1 @@
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-x
diff --git a/new.txt b/new.txt
new file mode 100644
--- /dev/null
+++ b/new.txt
@@ -0,0 +1,2 @@
+one
+two
\\ No newline at end of file
"""


def test_a_change_has_its_lines_of_the_base_and_its_counts() -> None:
    """Lines of the base are what two runners have in common; a line that looks like a head is none."""
    assert parse_changes(RAW, PATCH) == (
        Change("a b.txt", ChangeKind.CHANGED, "2222", (LineSpan(3, 4), LineSpan(10, 9)), added=3, removed=2),
        Change("new.txt", ChangeKind.ADDED, "3333", (LineSpan(1, 0),), added=2),
        Change("gone.txt", ChangeKind.DELETED, "0000", (LineSpan(1, 1),), removed=1),
        Change("inner", ChangeKind.ADDED, "5555", is_repository=True),
    )


def test_quoted_and_undecodable_names_find_their_lines() -> None:
    """Git quotes names with control characters, and only those."""
    raw = b':100644 100644 1 2 M\0tab\there "q" \\ \xe9\0:100644 100644 1 2 M\0caf\xe9\0'
    patch = (
        b'diff --git "a/tab\\there" "b/tab"\n--- "a/tab\\there \\"q\\" \\\\ \\351"\n'
        b'+++ "b/tab\\there \\"q\\" \\\\ \\351"\n@@ -1 +1 @@\n-a\n+b\n'
        b"diff --git a/caf\xe9 b/caf\xe9\n--- a/caf\xe9\n+++ b/caf\xe9\n@@ -7 +7 @@\n-a\n+b\n"
    )
    quoted, latin = parse_changes(raw, patch)
    assert (quoted.path, quoted.spans) == ('tab\there "q" \\ \udce9', (LineSpan(1, 1),))
    assert (latin.path, latin.spans) == ("caf\udce9", (LineSpan(7, 7),))


def test_binary_files_links_and_modes_have_no_lines() -> None:
    """They change as a whole; their hunks must not be lent from the file before."""
    raw = b":100644 100644 1 2 M\0a\0:100644 100755 1 1 M\0b\0:100644 120000 1 3 T\0c\0"
    patch = (
        b"diff --git a/a b/a\nindex 1..2 100644\nBinary files a/a and b/a differ\n"
        b"diff --git a/b b/b\nold mode 100644\nnew mode 100755\n"
    )
    assert [(change.path, change.kind, change.spans) for change in parse_changes(raw, patch)] == [
        ("a", ChangeKind.CHANGED, ()),
        ("b", ChangeKind.CHANGED, ()),
        ("c", ChangeKind.CHANGED, ()),
    ]


def test_what_was_cut_short_costs_lines_and_not_paths() -> None:
    """A diff beyond its bound ends anywhere."""
    raw = b":100644 100644 1 2 M\0a\0:100644 100644 1 2 M\0b\0:10064"
    changes = parse_changes(raw, b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,9 +1,9 @@\n-x")
    assert [(change.path, change.spans) for change in changes] == [("a", (LineSpan(1, 9),)), ("b", ())]
