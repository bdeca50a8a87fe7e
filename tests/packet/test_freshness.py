"""The successor is told what is no longer as the packet says."""

from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.domain.documents.packet import (
    GitState,
    Provenance,
    Reason,
    ResumePacket,
    TouchedFile,
    TurnExcerpt,
    ValidationRun,
)
from agent_relay.domain.facts import Facts, FileChange, Message
from agent_relay.domain.values import Tree, TreeFile, replace
from agent_relay.packet.freshness import list_later, list_touched, verify_freshness


def build(git: GitState | None, *files: TouchedFile) -> ResumePacket:
    """A packet that was made for this tree."""
    return ResumePacket(
        packet_id="P",
        session_id="S",
        sequence=1,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
        previous_agent="alpha",
        target_agent="beta",
        checkpoint_reason=Reason.MANUAL,
        git=git,
        touched_files=files,
    )


THEN = GitState(root="/r", branch="main", head="a" * 40, dirty=True, fingerprint="f1")
EDITED = TouchedFile(path="a.py", status="modified", added=3, removed=1)
NOW = Tree("/r", is_git=True, branch="main", head="a" * 40, dirty=True, fingerprint="f2")


def with_files(*files: TreeFile, fingerprint: str = "f2") -> Tree:
    """The same commit with these changes."""
    return Tree(
        "/r", is_git=True, branch="main", head="a" * 40, dirty=True, fingerprint=fingerprint, files=files
    )


def test_an_equal_fingerprint_means_nothing_changed() -> None:
    """It covers the contents, so the lists need not be compared."""
    assert verify_freshness(build(THEN, EDITED), with_files(fingerprint="f1")) == ()


def test_changed_files_are_counted_and_named() -> None:
    """New, gone and further edited files; what was only read does not count."""
    packet = build(
        THEN,
        EDITED,
        TouchedFile(path="gone.py", status="created", added=1, removed=0),
        TouchedFile(path="read.py", status="read"),
        TouchedFile(path="removed.py", status="deleted"),
        TouchedFile(path="caf\\xe9", status="untracked"),
    )
    tree = with_files(
        TreeFile("a.py", "modified", 5, 1),
        TreeFile("new.py", "untracked"),
        TreeFile("caf\udce9", "untracked"),
    )
    assert verify_freshness(packet, tree) == ("3 files changed since: a.py, gone.py, new.py",)


def test_one_file_is_one_file() -> None:
    """Sentences are read by people."""
    assert verify_freshness(build(THEN), with_files(TreeFile("x", "untracked"))) == (
        "1 file changed since: x",
    )


def test_many_names_are_cut_after_five() -> None:
    """The count says the rest."""
    tree = with_files(*(TreeFile(f"{n}", "untracked") for n in range(7)))
    assert verify_freshness(build(THEN), tree) == ("7 files changed since: 0, 1, 2, 3, 4, …",)


def test_an_edit_that_keeps_all_counts_is_still_seen() -> None:
    """The fingerprint knows better than the line counts."""
    assert verify_freshness(build(THEN, EDITED), with_files(TreeFile("a.py", "modified", 3, 1))) == (
        "files that were already modified have been modified again",
    )


def test_a_repository_that_was_only_named_is_compared_by_its_branch() -> None:
    """A file from another tool knows no commit: nothing may be said to have changed by that."""
    assert verify_freshness(build(GitState(root="https://x/a.git")), NOW) == ()
    assert verify_freshness(build(GitState(root="", branch="main")), NOW) == ()
    assert verify_freshness(build(GitState(root="", branch="dev")), NOW) == (
        "the branch was dev, now it is main",
    )


def test_a_moved_head_and_another_branch_are_said() -> None:
    """Somebody committed or switched in the meantime."""
    tree = Tree("/r", is_git=True, branch=None, head="b" * 40, fingerprint="f1")
    assert verify_freshness(build(THEN), tree) == (
        "HEAD was aaaaaaaaaaaa, now it is bbbbbbbbbbbb",
        "the branch was main, now it is (detached)",
    )
    unborn = GitState(root="/r", branch=None, head=None, fingerprint="f1")
    assert verify_freshness(build(unborn), NOW) == (
        "HEAD was nothing (no commits), now it is aaaaaaaaaaaa",
        "the branch was (detached), now it is main",
    )


def test_without_git_there_is_nothing_to_compare() -> None:
    """Plain folders are not stale, a repository that vanished is."""
    assert verify_freshness(build(None), NOW) == ()
    assert verify_freshness(build(None), Tree("/r")) == ()
    assert verify_freshness(build(GitState(root="/r")), Tree("/r")) == ()
    assert verify_freshness(build(THEN), Tree("/r")) == ("the tree is no longer a git work tree",)


def test_a_new_commit_that_took_the_changes_along_is_told_by_its_head() -> None:
    """No file differs from the packet's list, yet the fingerprint does: the commit is the reason."""
    tree = Tree("/r", is_git=True, branch="main", head="b" * 40, dirty=False, fingerprint="f3")
    assert verify_freshness(build(THEN), tree) == ("HEAD was aaaaaaaaaaaa, now it is bbbbbbbbbbbb",)


def _check(command: str, verdict: str, kind: str = "tests") -> ValidationRun:
    return ValidationRun.model_validate({"kind": kind, "command": command, "verdict": verdict})


def test_files_that_match_head_by_now_are_listed_separately() -> None:
    """They were committed or restored: looking for changes in them would be in vain."""
    packet = build(
        THEN, EDITED, TouchedFile(path="b.py", status="created"), TouchedFile(path="read.py", status="read")
    )
    tree = replace(with_files(), clean=("a.py", "b.py", "read.py"), head="b" * 40)
    assert verify_freshness(packet, tree) == (
        "HEAD was aaaaaaaaaaaa, now it is bbbbbbbbbbbb",
        "2 files listed as changed, now as in HEAD: a.py, b.py",
    )


def test_a_check_that_passed_before_files_changed_is_reported() -> None:
    """The packet says that it passed, which is true only of the past."""
    runs = (
        _check("pytest tests/old", "passed"),
        _check("pytest", "passed"),
        _check("ruff check", "failed", "lint"),
        _check("mypy", "passed", "typecheck"),
    )
    packet = build(THEN, EDITED).model_copy(update={"validation_runs": runs})
    two = with_files(TreeFile("a.py", "modified", 5, 1), TreeFile("new.py", "untracked"))
    assert verify_freshness(packet, two) == (
        "2 files changed since: a.py, new.py",
        "`pytest` passed before 2 files changed",
        "`mypy` passed before 2 files changed",
    )
    again = with_files(TreeFile("a.py", "modified", 3, 1))
    assert verify_freshness(packet, again)[1] == "`pytest` passed before those files changed"
    undone = replace(with_files(), clean=("a.py",))
    assert verify_freshness(packet, undone)[1] == "`pytest` passed before 1 file changed"
    committed = replace(undone, head="b" * 40)
    assert [note for note in verify_freshness(packet, committed) if "passed" in note] == []
    assert verify_freshness(packet, with_files(fingerprint="f1")) == ()


def test_the_files_to_look_up_are_those_a_packet_or_an_agent_changed() -> None:
    """What was only read is of no interest, and the same file is asked for once."""
    packet = build(THEN, EDITED, TouchedFile(path="read.py", status="read"))
    changes = tuple(
        FileChange(path, action, 1)
        for path, action in (
            ("/r/a.py", "modified"),
            ("b.py", "created"),
            ("/r/c.py", "read"),
            ("/x/d", "created"),
        )
    )
    facts = Facts("alpha", cwd="/r/sub", files=changes)  # type: ignore[arg-type]  # of literals
    assert list_touched("/r", packet, facts, prefix="sub") == ("/r/a.py", "/r/sub/b.py", "/x/d")
    assert list_touched("/r", None) == ()


def test_prompts_given_after_the_packet_are_told_and_all_that_nobody_answered() -> None:
    """Two prompts waited: together they are one text, which no single message of the talk is."""
    began = datetime(2026, 1, 1, tzinfo=UTC)
    talk = tuple(
        Message("user", text, turn, began + timedelta(minutes=turn), f"t:{turn}")
        for turn, text in enumerate(("paint the shed", "and the fence", "and the door"), start=1)
    )
    waiting = replace(talk[2], text="and the fence\n\nand the door")
    facts = Facts("alpha", conversation=talk, unprocessed_prompt=waiting)
    packet = build(THEN)

    def told_since(minutes: int) -> tuple[str, ...]:
        made = packet.model_copy(update={"created_at": began + timedelta(minutes=minutes)})
        return list_later(facts, "alpha", made)

    assert told_since(1) == (
        "2 more prompts were given to alpha, whose work on it is not included",
        "the user sent this last and got no answer: and the fence\n\nand the door",
    )
    assert told_since(2)[0].startswith("1 more prompt was given")
    assert told_since(3) == ()


@pytest.mark.parametrize("place", ["/t.jsonl:{}", "/t.jsonl#msg_{}"])
@pytest.mark.parametrize("hours", [-3, 0, 3])
def test_what_was_asked_later_is_found_by_its_turn_whatever_the_clock_says(place: str, hours: int) -> None:
    """The clock was set back after the packet was written, or ahead before it: the record's order stays."""
    began = datetime(2026, 1, 1, tzinfo=UTC)
    talk = tuple(
        Message("user", text, turn, began + timedelta(minutes=turn), place.format(turn))
        for turn, text in enumerate(("paint the shed", "and the fence", "and the door"), start=1)
    )
    last = Provenance(agent="alpha", transcript=place.format(2), turn=2, at=began)
    elsewhere = Provenance(agent="alpha", transcript="/other.jsonl:9", turn=9, at=began)
    quoted = [TurnExcerpt(role="user", text="quoted", source=one) for one in (last, elsewhere)]
    made = {"created_at": began + timedelta(hours=hours), "recent_turns": tuple(quoted)}
    packet = build(THEN).model_copy(update=made)
    facts = Facts("alpha", transcript="/t.jsonl", conversation=talk, unprocessed_prompt=talk[2])
    assert list_later(facts, "alpha", packet) == (
        "1 more prompt was given to alpha, whose work on it is not included",
        "the user sent this last and got no answer: and the door",
    )
    nothing_new = replace(facts, conversation=talk[:2], unprocessed_prompt=talk[1])
    assert list_later(nothing_new, "alpha", packet) == ()


def test_a_tree_that_could_not_be_read_has_not_lost_anything() -> None:
    """A slow disk is no reason to tell a successor that all commits are gone."""
    slow = Tree("/r", is_git=True, dirty=None, note="git did not answer", is_whole=False)
    assert verify_freshness(build(THEN), slow) == (
        "cannot tell whether the tree changed: git did not answer",
    )
    assert verify_freshness(build(GitState(root="/r")), slow) == ()
    assert verify_freshness(build(None), slow) == ()
