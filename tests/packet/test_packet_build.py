"""The packet of one handoff, and what a chain of them carries."""

import os

from hypothesis import given, settings
from hypothesis import strategies as st

from agent_relay.domain.documents.packet import ResumePacket
from agent_relay.domain.facts import CommandRun, Facts, Message, TodoItem, ToolError
from agent_relay.domain.limits import Evidence, Kind, Scope, Signal, Source
from agent_relay.domain.values import AgentName, Tree, TreeFile, replace
from agent_relay.packet.build import build_packet
from agent_relay.transcripts import fact_reading as shape
from agent_relay.transcripts.fact_readers import READERS
from tests.session.first_leg import FIRST, NOW, OCCASION, SECOND, build_first, say

_SAMPLES = os.path.join(os.path.dirname(__file__), "..", "transcripts", "samples")


def test_a_packet_says_what_a_successor_needs() -> None:
    """Early constraint, choice, failed approach, correction, plan, last error and prompt: all of them."""
    packet = build_first()
    assert packet.task == "Add a cache to the parser. Don't use redis."
    assert [one.text for one in packet.constraints] == [
        "Don't use redis.",
        "actually, make the size configurable",
    ]
    assert [(one.said, one.told) for one in packet.exchanges] == [
        (
            "Add a cache to the parser. Don't use redis.",
            "I'll use an LRU dict because it needs no server. I tried functools.cache, but it never evicts.",
        ),
        ("actually, make the size configurable", "Next I'll add the option."),
    ]
    assert [(one.id, one.summary, one.in_ledger) for one in packet.decisions] == [
        ("D1", "actually, make the size configurable", True),
    ]
    assert (packet.attempts, packet.remarks) == ((), ())
    assert [(one.text, one.status) for one in packet.plan] == [
        ("add the option", "in_progress"),
        ("update docs", "pending"),
    ]
    assert packet.blockers[0].summary == "`pytest -q` exited 1: FAILED test_cache.py::test_size"
    assert packet.validation_state.tests == "failed"
    assert packet.unprocessed_prompt is not None
    assert packet.unprocessed_prompt.text == "actually, make the size configurable"
    assert packet.next_task == "actually, make the size configurable"
    assert packet.turn_count == 2
    assert [(one.kind, one.text) for one in packet.background] == [
        ("subagent", "look at callers"),
        ("shell", "npm run dev"),
    ]
    assert packet.usage is not None
    assert (packet.usage.input, packet.usage.cached, packet.usage.output) == (5, 4, 3)


def test_every_excerpt_names_its_place() -> None:
    """A successor that doubts a quote can read where it stands."""
    source = build_first().constraints[1].source
    assert source is not None
    assert (source.agent, source.transcript, source.turn) == ("alpha", "t:2", 2)


def test_the_tree_and_the_signal_are_told() -> None:
    """Where the work stands, and why it changed hands."""
    tree = Tree(
        "/r",
        is_git=True,
        branch="main",
        head="abc",
        dirty=True,
        fingerprint="f",
        note="a merge is in progress",
    )
    tree = replace(tree, files=(TreeFile("cache.py", "untracked", 10, 0),))
    evidence = Evidence(Source.TRANSCRIPT, "You've hit your session limit")
    signal = Signal(AgentName("alpha"), Kind.LIMIT, Scope.ACCOUNT, evidence, decides=True, resets_at=NOW)
    packet = build_packet(FIRST, OCCASION, tree=tree, signal=signal)
    assert packet.git is not None
    assert (packet.git.branch, packet.git.dirty, packet.git.note) == ("main", True, "a merge is in progress")
    assert packet.limit is not None
    assert (packet.limit.scope, packet.limit.evidence) == (Scope.ACCOUNT, "You've hit your session limit")
    assert [(one.path, one.status, one.added) for one in packet.touched_files] == [
        ("cache.py", "created", 10)
    ]


def test_a_tree_that_could_not_be_read_says_why() -> None:
    """Without git's facts a successor should look for itself, and know it."""
    slow = Tree("/r", dirty=None, note="git cannot read this folder: it did not answer", is_whole=False)
    packet = build_packet(FIRST, OCCASION, tree=slow)
    assert packet.git is not None
    assert (packet.git.root, packet.git.dirty, packet.git.note) == ("/r", None, slow.note)
    assert build_packet(FIRST, OCCASION, tree=Tree("/r", note="git is not installed")).git is None


def test_a_prompt_is_never_cut() -> None:
    """The user's unprocessed words reach the successor verbatim, whatever their length."""
    text = "word " * 20_000
    said = Message("user", text, 1)
    packet = build_packet(Facts(agent="a", conversation=(said,), unprocessed_prompt=said), OCCASION)
    assert packet.unprocessed_prompt is not None
    assert packet.unprocessed_prompt.text == text
    assert packet.task is not None
    assert len(packet.task) < 13_000


def test_a_prompt_newer_than_the_plan_comes_first() -> None:
    """The plan was made for an earlier request."""
    facts = Facts(
        agent="a",
        conversation=say("one", "fine", "two"),
        plan=(TodoItem("left over", "pending", 1),),
        unprocessed_prompt=say("", "", "two")[2],
    )
    assert build_packet(facts, OCCASION).next_task == "two"


def test_what_to_do_next_falls_back_in_order() -> None:
    """A failing check, then what the agent announced, then nothing: never something invented."""
    said = say("go", "Done. Now I'll polish it.")
    failing = (CommandRun("mypy .", "error: no\nFound 1 error", 1, 1),)
    facts = Facts(agent="a", conversation=said, commands=failing)
    assert build_packet(facts, OCCASION).next_task == "make `mypy .` pass: error: no"
    assert build_packet(replace(facts, commands=()), OCCASION).next_task == "continue: Now I'll polish it."
    assert build_packet(Facts(agent="a", conversation=say("go", "Done.")), OCCASION).next_task is None


def test_later_requests_are_told_where_they_were_made() -> None:
    """The task is what the work began with; consent adds nothing to it, nor to what was said."""
    said = say("port it to the new parser", "ok", "yes", "ok", "also the docs of the new parser", "ok")
    packet = build_packet(Facts(agent="a", conversation=said), OCCASION)
    assert packet.task == "port it to the new parser"
    assert [one.said for one in packet.exchanges][-1] == "also the docs of the new parser"


def test_the_last_exchange_is_quoted() -> None:
    """Where the last prompt was not answered, the exchange before it is quoted, too."""
    facts = Facts(agent="a", conversation=say("one", "first", "two"))
    assert [(one.role, one.text) for one in build_packet(facts, OCCASION).recent_turns] == [
        ("user", "one"),
        ("assistant", "first"),
        ("user", "two"),
    ]
    [_, long] = build_packet(Facts(agent="a", conversation=say("one", "x" * 9000)), OCCASION).recent_turns
    assert len(long.text) < 4100
    assert "[… 5000 characters left out …]" in long.text


def test_an_agents_summary_is_the_narrative() -> None:
    """Compacted history was summed up by the agent itself; a later leg keeps the earlier summary."""
    packet = build_packet(replace(FIRST, summary="We cache."), OCCASION)
    assert packet.narrative == "We cache."
    assert build_packet(Facts(agent="beta"), SECOND, previous=packet).narrative == "We cache."


def test_packets_survive_a_round_trip() -> None:
    """What was built can be published and read again."""
    packet = build_first()
    assert ResumePacket.model_validate_json(packet.model_dump_json(by_alias=True)) == packet


def test_real_sessions_become_packets() -> None:
    """From a real session that hit its limit: the task, the change and the waiting prompt."""
    with open(os.path.join(_SAMPLES, "claude-limit.jsonl"), "rb") as file:
        facts = READERS["claude-jsonl"].read(
            shape.TranscriptSource(place="t", lines=file.read().split(b"\n"))
        )
    packet = build_packet(facts, OCCASION)
    assert packet.task == "What is wrong with calc.py?"
    assert "yes please fix it" in [one.said for one in packet.exchanges]
    assert packet.next_task == "now add a test"
    assert [(one.path, one.status, one.added) for one in packet.touched_files] == [
        ("calc.py", "modified", None),
        ("test_calc.py", "created", None),
    ]


@settings(max_examples=80)
@given(st.lists(st.text(max_size=200), max_size=8), st.text(max_size=80), st.text(max_size=200))
def test_no_words_break_the_packet(turns: list[str], command: str, output: str) -> None:
    """Whatever was said or run, a packet can be built, and building it again on top loses nothing."""
    facts = Facts(agent="a", conversation=say(*turns), commands=(CommandRun(command, output, 1, 1),))
    packet = build_packet(facts, OCCASION)
    again = build_packet(facts, SECOND, previous=packet)
    assert again.constraints == packet.constraints
    assert again.decisions == packet.decisions
    assert again.exchanges[: len(packet.exchanges)] == packet.exchanges
    assert again.task == packet.task


def test_what_is_said_twice_is_told_once() -> None:
    """A chain repeats itself; the packet must not."""
    facts = Facts(
        agent="a",
        conversation=say(
            "Never push.", "I chose A because B.", "never push", "I chose A because B. I chose C because D."
        ),
    )
    packet = build_packet(facts, OCCASION)
    assert [one.text for one in packet.constraints] == ["Never push."]
    assert packet.decisions == ()
    assert build_packet(facts, SECOND, previous=packet).decisions == packet.decisions


def test_of_many_rules_the_first_and_the_last_are_kept() -> None:
    """The early ones are the project's, the late ones the corrections."""
    turns = [word for number in range(60) for word in (f"Never use module {number}.", "ok")]
    packet = build_packet(Facts(agent="a", conversation=say(*turns)), OCCASION)
    assert len(packet.constraints) == 40
    assert packet.constraints[0].text == "Never use module 0."
    assert packet.constraints[-1].text == "Never use module 59."


def test_unknown_kinds_of_background_work_are_kept() -> None:
    """A new kind of background work is better told loosely than lost."""
    packet = build_packet(replace(FIRST, background=("something odd",)), OCCASION)
    assert [(one.kind, one.text) for one in packet.background] == [("subagent", "something odd")]


def test_a_refusal_without_words_is_no_rule() -> None:
    """The user only pressed no."""
    error = ToolError("Bash", "rm x\nthe user said:\n ", 1)
    assert build_packet(Facts(agent="a", errors=(error,)), OCCASION).constraints == ()
