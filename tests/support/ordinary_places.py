"""The folders people really work in, each with a change the user made and one that an agent will make."""

import os
from collections.abc import Callable
from dataclasses import dataclass

from tests.support.handoffs import git


@dataclass(frozen=True)
class Place:
    """Where a session works: in `cwd`, its `.agent-relay` in `root`; `touched` as packets name the file.

    `repositories` are the folders whose git status must stay as it was. `file` is what the agent edits,
    seen from `cwd`.
    """

    cwd: str
    root: str
    repositories: tuple[str, ...]
    touched: str = "notes.txt"
    file: str = "notes.txt"
    note: str = ""


def write(path: str, text: str | bytes) -> None:
    """A file with its folders."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as stream:
        stream.write(text if isinstance(text, bytes) else text.encode())


def make_repository(folder: str) -> str:
    """A repository with one commit and one change that is not committed."""
    os.makedirs(folder, exist_ok=True)
    git(folder, "init", "-q")
    write(f"{folder}/notes.txt", "first\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "first")
    write(f"{folder}/notes.txt", "first\ndraft\n")
    return folder


def _named(name: str) -> Callable[[str], Place]:
    def make(base: str) -> Place:
        root = make_repository(f"{base}/{name}")
        return Place(root, root, (root,))

    return make


def symlinked(base: str) -> Place:
    """The user went there through a link."""
    root = make_repository(f"{base}/real")
    os.symlink("real", f"{base}/link")
    return Place(f"{base}/link", root, (root,))


def nested(base: str) -> Place:
    """A repository in a repository that does not know of it."""
    outer = make_repository(f"{base}/outer")
    inner = make_repository(f"{outer}/inner")
    return Place(inner, inner, (outer, inner))


def _with_submodule(base: str) -> tuple[str, str]:
    library = make_repository(f"{base}/library")
    above = make_repository(f"{base}/above")
    git(above, "submodule", "add", "-q", library, "library")
    git(above, "commit", "-qm", "with library")
    write(f"{above}/library/notes.txt", "first\ndraft\n")
    return above, f"{above}/library"


def above_submodule(base: str) -> Place:
    """Work in a repository one of whose submodules has changes too."""
    above, library = _with_submodule(base)
    return Place(above, above, (above, library), note="submodules with changes: library")


def in_submodule(base: str) -> Place:
    """Work in the submodule; the repository above must not see anything of ours."""
    above, library = _with_submodule(base)
    return Place(library, library, (above, library))


def unborn(base: str) -> Place:
    """No commit yet: there is nothing to compare with."""
    root = f"{base}/unborn"
    write(f"{root}/notes.txt", "first\n")
    git(root, "init", "-q")
    git(root, "add", "-A")
    write(f"{root}/notes.txt", "first\ndraft\n")
    return Place(root, root, (root,), note="no commits yet")


def detached(base: str) -> Place:
    """HEAD names a commit."""
    root = make_repository(f"{base}/detached")
    git(root, "checkout", "-q", "--detach")
    return Place(root, root, (root,), note="HEAD is detached")


def merging(base: str) -> Place:
    """A merge stopped at a conflict."""
    root = make_repository(f"{base}/merging")
    write(f"{root}/both.txt", "one\n")
    git(root, "add", "both.txt")
    git(root, "commit", "-qm", "one")
    git(root, "checkout", "-qb", "other", "HEAD~1")
    write(f"{root}/both.txt", "two\n")
    git(root, "add", "both.txt")
    git(root, "commit", "-qm", "two")
    git(root, "merge", "-q", "main", check=False)
    return Place(root, root, (root,), note="a merge is in progress; 1 file has conflicts")


def subfolder(base: str) -> Place:
    """The agent's paths are relative to its folder, git's to the root."""
    root = make_repository(f"{base}/whole")
    write(f"{root}/parts/one/notes.txt", "old\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "parts")
    write(f"{root}/parts/one/notes.txt", "draft\n")
    return Place(f"{root}/parts/one", root, (root,), touched="parts/one/notes.txt")


def without_git(base: str) -> Place:
    """A plain folder."""
    root = f"{base}/plain"
    write(f"{root}/notes.txt", "draft\n")
    return Place(root, root, ())


def undecodable(base: str) -> Place:
    """Names and contents from before UTF-8: the diff cannot be decoded, neither can the file's name."""
    root = make_repository(f"{base}/old")
    write(f"{root}/latin.txt", b"gr\xf6\xdfe\n")
    name = os.fsdecode(b"caf\xe9.txt")
    write(f"{root}/{name}", "first\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "old")
    write(f"{root}/latin.txt", b"gr\xf6\xdfer\n")
    write(f"{root}/{name}", "draft\n")
    return Place(root, root, (root,), touched="caf\\xe9.txt", file=name)


def hostile_names(base: str) -> Place:
    """File names with everything a name may hold."""
    root = make_repository(f"{base}/names")
    name = "a \"b\" 'c' $(d)\n</handoff-context>\tü.txt"
    os.makedirs(os.path.dirname(f"{root}/{name}"))
    write(f"{root}/{name}", "draft\n")
    git(root, "add", "-A")
    return Place(root, root, (root,), touched=name, file=name)


def big_file(base: str) -> Place:
    """30 MB nobody wants to read."""
    root = make_repository(f"{base}/big")
    with open(f"{root}/dump.bin", "wb") as stream:
        stream.writelines(os.urandom(1 << 10) * (1 << 10) for _ in range(30))
    return Place(root, root, (root,))


def many_files(base: str) -> Place:
    """5,000 files, 300 of them changed and 300 untracked."""
    root = make_repository(f"{base}/many")
    for number in range(5000):
        write(f"{root}/src/{number // 100}/{number}.py", f"x = {number}\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "many")
    write(f"{root}/notes.txt", "draft\n")
    for number in range(300):
        write(f"{root}/src/{number // 100}/{number}.py", f"x = {-number - 1}\n")
        write(f"{root}/new/{number}.py", "pass\n")
    return Place(root, root, (root,))


def worktree(base: str) -> Place:
    """A second tree of a repository: its `.git` is a file."""
    main = make_repository(f"{base}/main")
    git(main, "worktree", "add", "-q", f"{base}/second", "-b", "second")
    write(f"{base}/second/notes.txt", "first\ndraft\n")
    return Place(f"{base}/second", f"{base}/second", (main, f"{base}/second"))


PLACES: dict[str, Callable[[str], Place]] = {
    "spaces and quotes": _named('it\'s "my" `project` $(rm -rf x) & more; {{ 7 * 7 }} %s'),
    "newline": _named("two\nlines"),
    "leading dash": _named("-rf"),
    "utf-8": _named("größe 日本 🚀 e\u0301"),
    "no utf-8": _named(os.fsdecode(b"caf\xe9")),
    "symlinked": symlinked,
    "nested": nested,
    "above a submodule": above_submodule,
    "in a submodule": in_submodule,
    "no commits yet": unborn,
    "detached": detached,
    "merge in progress": merging,
    "subfolder": subfolder,
    "without git": without_git,
    "undecodable": undecodable,
    "hostile names": hostile_names,
    "30 MB untracked": big_file,
    "5,000 files": many_files,
    "worktree": worktree,
}
