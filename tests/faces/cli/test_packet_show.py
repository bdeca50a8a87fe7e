"""`packet show` is for people: what the successor is told, where that is from, and what was left out."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.faces.cli_run import World
from tests.house import tree

pytestmark = pytest.mark.size("test")

RECORD = "/home/ada/.claude/projects/shed/one.jsonl"
OTHER = "/home/ada/.codex/sessions/two.jsonl"
HOSTILE = (
    "\x1b[31mred\x1b[0m\x07 \u202edoor\u202c \x9b2J " + "שלום " + "long " * 4000 + "\nfoo: agent-relay stop"
)
VERSIONS = Path(tree.CHECKOUT) / "tests" / "store" / "versions"


def at(turn: int, line: int, record: str = RECORD, agent: str = "claude") -> dict[str, object]:
    return {"agent": agent, "turn": turn, "transcript": f"{record}:{line}"}


PACKET: dict[str, object] = {
    "schema": "agent-relay/resume-packet",
    "version": 1,
    "packet_id": "01M7YQ8VZSDCE210CV2GR5DXVY",
    "session_id": "01M7YQ8VEGM236HDJTCD26BQEP",
    "sequence": 1,
    "created_at": "2026-11-21T09:33:49Z",
    "previous_agent": "claude",
    "target_agent": "understudy",
    "checkpoint_reason": "rate_limit",
    "limit": {"scope": "account", "evidence": "You've hit your session limit"},
    "task": "Paint the shed.\nBlue, if there is any.",
    "task_source": at(1, 2),
    "constraints": [
        {"text": "Never touch the old door.", "source": at(2, 9)},
        {
            "text": "Never ever use a roller for this.",
            "source": at(3, 12),
            "ended_in": 6,
            "ended_by": "a roller is fine",
        },
    ],
    "exchanges": [
        {"said": "the second one, but cheaper", "on": "tar or oil", "is_settled": True, "source": at(4, 20)},
        {"said": "try it with tar", "ended_in": 6, "ended_how": "taken back", "source": at(5, 31)},
        {"said": "no tar, it smells", "took_back": 5, "measured": "dry in 3.5 h", "source": at(6, 44)},
        {"said": "one coat", "ended_in": 8, "ended_how": "replaced", "source": at(7, 51)},
        {"failed": "`make coat`: brush not found", "source": at(8, 60, OTHER, "codex")},
    ],
    "blockers": [{"id": "b1", "summary": "`make coat` exited 2", "evidence": "No rule", "source": at(8, 61)}],
    "plan": [{"text": "sand it", "status": "completed"}, {"text": "paint it", "status": "in_progress"}],
    "touched_files": [
        {"path": "shed.py", "status": "modified", "added": 3, "removed": 1, "source": at(7, 52)},
        {"path": "door.py", "status": "read"},
    ],
    "validation_runs": [
        {"kind": "lint", "command": "make lint", "exit_code": 0, "verdict": "passed", "changed_since": 2}
    ],
    "unprocessed_prompt": {"text": "and the roof?", "source": at(9, 70)},
    "cuts": [
        {"section": "exchanges", "omitted": 23, "path": RECORD},
        {"section": "recent_turns text", "omitted": 1234, "path": f"{OTHER}:7"},
    ],
    "redactions": [{"kind": "anthropic-key", "count": 2}],
}


def show(world: World, packet: dict[str, object], *words: str) -> str:
    """What `packet show` prints of a packet brought from elsewhere, in a pipe."""
    (Path(world.cwd) / "in.json").write_text(json.dumps(packet))
    done = world.run("packet", "import", "in.json", "--to", "understudy")
    assert (done.status, done.err) == (0, "")
    done = world.run("packet", "show", *words)
    assert (done.status, done.err) == (0, "")
    return done.out


def test_what_the_successor_is_told_stands_there_with_where_it_is_from(world: World) -> None:
    """Who wonders why an agent does something asks what it was told, and who said so."""
    out = show(world, PACKET)
    head = out.split("\n\n")[0].splitlines()
    assert head[0].startswith("Packet 1: claude → understudy  ")
    assert head[1] == "claude hit its session limit"
    assert head[2].startswith("Written ")
    assert head[2].endswith(" ago, not picked up yet")
    assert head[3].startswith("understudy reads ")
    assert head[4].endswith(" -n 1 --text")
    for line in (
        "  Paint the shed. Blue, if there is any.  (claude, turn 1, A:2)",
        "Rules and corrections of the user (2)",
        "  Never touch the old door.  (claude, turn 2, A:9)",
        "    taken back in turn 6: a roller is fine",
        "Said and done, 1 settled by the user (5 of 28)",
        "  settled: “the second one, but cheaper”  (claude, turn 4, A:20)",
        "  edit taken back in turn 6: “try it with tar”  (claude, turn 5, A:31)",
        "  took back the edit of turn 5: “no tar, it smells”  (claude, turn 6, A:44)",
        "    measured: dry in 3.5 h",
        "  edit replaced in turn 8: “one coat”  (claude, turn 7, A:51)",
        "  codex at work  (codex, turn 8, B:60)",
        "    failed: `make coat`: brush not found",
        "  modified shed.py (+3 -1)  (claude, turn 7, A:52)",
        "  only read: door.py",
        "  lint passed (exit 0): make lint",
        "    2 files changed after it",
        "  [~] paint it",
        "  and the roof?  (claude, turn 9, A:70)",
        f"  A  {RECORD}",
        f"  B  {OTHER}",
    ):
        assert line in out.splitlines(), line
    # A short packet that hides its gaps would be taken for the whole story.
    *_, left = out.partition("Left out to save space\n")
    assert left.splitlines()[:2] == ["  23 exchanges (A)", "  1,234 characters of the latest exchange (B)"]
    assert left.splitlines()[-1] == "secrets removed: 2 anthropic-key"


def test_the_text_is_what_its_target_reads_and_nothing_else(world: World) -> None:
    """Scripts feed it to other agents: no remark, no escape, no other line end; the schema is for checks."""
    text = show(world, PACKET, "--text")
    path = world.run("packet", "path").out.strip()
    assert text == Path(path).read_text()
    assert text.startswith("<handoff-context>\n")
    assert world.run("packet", "show", "--text", "--json").status == 2
    assert json.loads(world.run("packet", "show", "--json").out)["task"] == PACKET["task"]
    schema = json.loads(world.run("packet", "schema").out)
    assert schema["properties"]["schema"]["const"] == PACKET["schema"]


def test_what_a_person_took_out_of_the_text_is_not_shown_as_told(world: World) -> None:
    """The view and the text are of one mind."""
    assert "Never touch the old door." in show(world, PACKET)
    path = Path(world.run("packet", "path").out.strip())
    text = path.read_text()
    path.write_text("".join(line for line in text.splitlines(True) if "old door" not in line))
    out = world.run("packet", "show").out
    assert "old door" not in out
    assert "old door" not in world.run("packet", "show", "--text").out
    assert "edited since it was published: text" in out


def test_hostile_words_stay_on_short_lines_without_escapes(world: World) -> None:
    """A transcript is written by programs, and read on terminals that obey what they are sent."""
    hostile = {
        **PACKET,
        "task": HOSTILE,
        "previous_agent": "cla\x1b[2Jude",
        "exchanges": [{"said": HOSTILE, "told": HOSTILE, "source": at(4, 20)}],
        "constraints": [{"text": HOSTILE, "source": {"agent": HOSTILE, "transcript": HOSTILE}}],
        "touched_files": [{"path": "a\nb\x1b]0;x\x07.py", "status": "modified"}],
        "plan": [{"text": f"step {number} " + "x" * 500} for number in range(300)],
        "cuts": [{"section": "\x1b[1m" + "new" * 50, "omitted": 3, "path": "/a\nb"}],
    }
    show(world, PACKET)
    document = Path(json.loads(world.run("packet", "path", "--json").out)["document"])
    document.write_text(json.dumps({**json.loads(document.read_text()), **hostile}))
    done = world.run("packet", "show")
    out = done.out
    assert (done.status, done.err) == (0, "")
    assert not any(sign in out for sign in "\x1b\x07\x9b\u202e\u202c\t\r")
    before = out.partition("\nSources\n")[0]
    assert max(map(len, before.splitlines())) <= 130
    assert len(before.splitlines()) < 120
    assert "\nfoo: agent-relay stop" not in out
    assert "  … and " in before


def test_packets_of_earlier_versions_are_shown(world: World) -> None:
    """A packet waits for months, and says less than today's."""
    for name in ("packet-1.json", "packet-1-least.json", "packet-1-newer.json"):
        packet = json.loads((VERSIONS / name).read_text())
        out = show(world, packet)
        assert out.startswith("Packet 1: demo → understudy  ")
        assert ("Paint the shed." in out) == ("task" in packet)


def test_decisions_and_attempts_of_older_packets_are_told(world: World) -> None:
    """Before there was a ledger of exchanges, this is where all of it stood."""
    older = {
        **PACKET,
        "exchanges": [],
        "decisions": [{"id": "d1", "summary": "Oil it.", "why": "It lasts.", "source": at(3, 14)}],
        "attempts": [{"summary": "Tar", "outcome": "It smells.", "source": at(2, 8)}],
        "remarks": [{"text": "The roof leaks.", "source": at(4, 19)}],
    }
    lines = show(world, older).splitlines()
    assert lines[lines.index("Decisions (1)") + 1] == "  Oil it.  (claude, turn 3, A:14)"
    assert "    why: It lasts." in lines
    assert lines[lines.index("Tried (1)") + 1] == "  Tar  (claude, turn 2, A:8)"
    assert lines[lines.index("Also said (1)") + 1] == "  The roof leaks.  (claude, turn 4, A:19)"


def test_a_document_of_the_agents_own_is_told_by_size_and_headings(world: World) -> None:
    """Its length would hide everything else, and the text has it whole."""
    document = "## Goal\nPaint the shed.\n\n## Next step\nThe roof.\n" + "And so on. " * 300
    out = show(world, {**PACKET, "narrative": document, "narrative_source": {"agent": "claude", "turn": 8}})
    lines = out.splitlines()
    place = lines.index("In claude's own words")
    assert lines[place + 1].endswith("characters  (claude, turn 8)")
    assert lines[place + 2] == "    Goal · Next step"


def test_turns_of_the_same_number_are_told_apart(world: World) -> None:
    """Each conversation counts from one."""
    exchanges = [
        {"said": "tar it", "ended_in": 2, "ended_how": "corrected", "source": at(2, 9)},
        {"said": "oil it", "ended_in": 3, "ended_how": "taken back", "source": at(3, 9)},
        {"failed": "`make coat`: brush not found", "source": at(1, 60, OTHER, "codex")},
        {"failed": "`make door`: no wood", "source": at(9, 60, OTHER, "codex")},
        {"failed": "`make roof`: no wood", "source": at(9, 70)},
    ]
    lines = show(world, {**PACKET, "exchanges": exchanges}).splitlines()
    for line in (
        "  corrected in turn 2: “tar it”  (claude, turn 2, A:9)",
        "  edit taken back in the same turn: “oil it”  (claude, turn 3, A:9)",
        "  codex at work  (codex, turn 1, B:60)",
        "  codex at work  (codex, turn 9, B:60)",
        "  the waiting prompt  (claude, turn 9, A:70)",
    ):
        assert line in lines


def test_what_changed_in_the_tree_since_is_told(world: World) -> None:
    """What was true an hour ago is read as if it were true now."""
    git = {"root": world.cwd, "branch": "main", "head": "94bb8b61b0c3", "fingerprint": "6b1c"}
    subprocess.run(["git", "init", "-q", "-b", "other", world.cwd], check=True, env=world.environ())
    lines = show(world, {**PACKET, "git": git}).splitlines()
    changed = lines[lines.index("Changed since it was written") + 1 :]
    assert "  the branch was main, now it is other" in changed
