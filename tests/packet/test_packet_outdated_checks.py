"""A check counts as passed only as long as no file changed after it."""

from datetime import UTC, datetime, timedelta

from agent_relay.domain.documents.packet import ResumePacket, ValidationState
from agent_relay.domain.facts import CommandRun, Facts, FileChange, Message
from agent_relay.domain.values import Tree, TreeFile, replace
from agent_relay.packet.build import build_packet
from tests.session.first_leg import OCCASION, SECOND

_START = datetime(2026, 1, 1, 10, tzinfo=UTC)
_TALK = (Message("user", "go", 1), Message("assistant", "done", 1))


def _at(minute: int) -> datetime:
    return _START + timedelta(minutes=minute)


def _run(minute: int, command: str = "pytest -q", output: str = "4 passed") -> CommandRun:
    return CommandRun(command, output, 0, 1, _at(minute), f"t:{minute}")


def _edit(minute: int, path: str) -> FileChange:
    return FileChange(path, "modified", 1, at=_at(minute), place=f"t:{minute}")


def _build(
    *facts: CommandRun | FileChange, tree: Tree | None = None, previous: ResumePacket | None = None
) -> ResumePacket:
    runs = tuple(one for one in facts if isinstance(one, CommandRun))
    files = tuple(one for one in facts if isinstance(one, FileChange))
    whole = Facts("alpha", cwd="/r", conversation=_TALK, commands=runs, files=files)
    return build_packet(whole, SECOND if previous else OCCASION, tree=tree, previous=previous)


def _list_changed(packet: ResumePacket) -> list[int | None]:
    return [run.changed_since for run in packet.validation_runs]


def test_an_edit_after_a_check_leaves_its_result_open() -> None:
    """Each run tells how many files changed after it; the state is of the last one of its kind."""
    packet = _build(
        _run(1), _edit(2, "a.py"), _edit(3, "/r/b.py"), _run(4, "ruff check ."), _edit(5, "/r/a.py")
    )
    assert _list_changed(packet) == [2, 1]
    assert packet.validation_state == ValidationState()
    assert [run.verdict for run in packet.validation_runs] == ["passed", "passed"]


def test_edits_before_a_check_and_files_elsewhere_do_not_count() -> None:
    """Notes outside the tree are not what a check covers, nor is relay's own folder."""
    packet = _build(_edit(1, "a.py"), _run(2), _edit(3, "/elsewhere/notes"), _edit(4, "/r/.agent-relay/x"))
    assert _list_changed(packet) == [None]
    assert packet.validation_state.tests == "passed"


def test_without_moments_the_order_in_the_transcript_decides() -> None:
    """A line number, or the id of a message; one record is one moment."""
    run = CommandRun("pytest", "", 0, 2, place="t:9")
    for turn, place, count in ((2, "t:10", 1), (2, "t:9", None), (2, "t:8", None), (3, "t:1", 1)):
        packet = _build(run, FileChange("a.py", "modified", turn, place=place))
        assert _list_changed(packet) == [count]
    run = replace(run, place="db#msg_2/prt_1")
    assert _list_changed(_build(run, FileChange("a.py", "modified", 2, place="db#msg_3/prt_1"))) == [1]


def test_a_failure_stays_a_failure() -> None:
    """Whether the edits mended it is not known before it is run again."""
    failed = CommandRun("pytest", "1 failed", 1, 1, _at(1), "t:1")
    packet = _build(failed, _edit(2, "a.py"))
    assert (packet.validation_state.tests, _list_changed(packet)) == ("failed", [1])


def test_edits_of_a_later_leg_count_for_the_checks_before() -> None:
    """The second agent changed what the first one had tested."""
    first = _build(_edit(1, "a.py"), _run(2), _edit(3, "b.py"))
    assert _list_changed(first) == [1]
    second = _build(_edit(10, "b.py"), _edit(11, "c.py"), previous=first)
    assert _list_changed(second) == [2]
    assert _list_changed(_build(previous=second)) == [2]
    rerun = _build(_edit(10, "c.py"), _run(12), previous=first)
    assert _list_changed(rerun) == [2, None]
    assert rerun.validation_state.tests == "passed"


def test_a_changed_file_written_later_counts_too() -> None:
    """A shell command or the user changed it: no transcript tells, but the file does."""
    files = (
        TreeFile("a.py", "modified", 1, 1, changed_at=_at(1)),
        TreeFile("b.py", "modified", 1, 1, changed_at=_at(9)),
        TreeFile("report.xml", "untracked", changed_at=_at(2) + timedelta(seconds=1)),
    )
    tree = Tree("/r", is_git=True, head="h", fingerprint="f", files=files)
    assert _list_changed(_build(_edit(1, "a.py"), _run(2), tree=tree)) == [1]


def test_a_change_that_was_taken_back_counts_for_the_checks_before() -> None:
    """The check ran with it. A file that a new commit took along is the same as before."""
    files = (TreeFile("a.py", "modified", 1, 1),)
    tree = Tree("/r", is_git=True, head="h", fingerprint="f", files=files)
    first = _build(_edit(1, "a.py"), _run(2), tree=tree)
    clean = replace(tree, files=(), clean=("a.py",), fingerprint="g")
    assert _list_changed(_build(previous=first, tree=clean)) == [1]
    assert _list_changed(_build(previous=first, tree=replace(clean, head="i"))) == [None]
