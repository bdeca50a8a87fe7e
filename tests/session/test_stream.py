"""A headless agent's records: what each says, and whether the turn came to a good end."""

import pytest

from agent_relay.domain.documents.adapter import Steps, StreamRule
from agent_relay.domain.documents.rules import Where
from agent_relay.domain.protocol.run_output import RunPlanStep
from agent_relay.session.turns.output import OutputItem, TurnVerdict, read_record

SAYS = (
    StreamRule(
        means="text",
        where=Where(equals={"type": "assistant"}),
        each="message/content",
        of=Where(equals={"type": "text"}),
        text="text",
    ),
    StreamRule(
        means="tool",
        where=Where(equals={"type": "assistant"}),
        each="message/content",
        of=Where(equals={"type": "tool_use"}),
        name="name",
        id="id",
        text="input",
    ),
    StreamRule(means="text", where=Where(equals={"type": "delta"}), text="text", pieces=True),
    StreamRule(
        means="result",
        where=Where(equals={"type": "result"}),
        text="output",
        failed=Where(equals={"ok": False}),
    ),
    StreamRule(
        means="usage",
        where=Where(equals={"type": "end"}),
        tokens={"input": "usage/in", "output": "usage/out"},
        cost="usd",
    ),
    StreamRule(means="failed", where=Where(equals={"type": "end", "error": True}), text="why"),
    StreamRule(means="done", where=Where(equals={"type": "end", "error": False}), text="why"),
)


def read(record: dict[str, object]) -> list[OutputItem]:
    return list(read_record(SAYS, record))


def test_every_entry_of_a_list_counts_for_itself() -> None:
    """One message may hold words and calls."""
    parts = [
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "name": "Read", "id": "c1", "input": {"p": 1}},
    ]
    assert read({"type": "assistant", "message": {"content": parts}}) == [
        OutputItem("text", text="I look."),
        OutputItem("tool", text='{"p":1}', name="Read", call="c1"),
    ]
    assert read({"type": "assistant", "message": {"content": "no list"}}) == []


def test_words_are_told_whole_and_tools_in_short() -> None:
    """An answer is what the run is for; a tool's output stands in the transcript."""
    assert len(read({"type": "delta", "text": "x" * 50_000})[0].text) == 50_000
    assert read({"type": "delta", "text": "x"})[0].is_piece
    long = read({"type": "result", "output": "x" * 50_000, "ok": False})[0]
    assert (len(long.text), long.is_failure) == (4_000, True)
    assert read({"type": "result", "ok": True}) == [OutputItem("result")]


def test_what_was_used_is_told_as_far_as_the_agent_says() -> None:
    """Unknown is not zero."""
    usage, _ = read({"type": "end", "error": False, "usage": {"in": 7, "out": "many"}, "usd": 0.5})
    assert (usage.tokens, usage.cost) == ({"input": 7}, 0.5)
    nothing, _ = read({"type": "end", "error": False, "usage": {"in": -1, "out": True}, "usd": True})
    assert (nothing.tokens, nothing.cost) == ({}, None)


def judge(*records: dict[str, object]) -> TurnVerdict:
    verdict = TurnVerdict(SAYS)
    for record in records:
        verdict.hear(record)
    return verdict


def test_a_turn_is_done_only_where_the_agent_says_so() -> None:
    """A process that ends with 0 in the middle of its words has not done its task."""
    assert not judge({"type": "delta", "text": "half a"}).is_done
    assert judge({"type": "delta", "text": "whole"}, {"type": "end", "error": False}).is_done


@pytest.mark.parametrize(
    "before",
    [
        {"type": "nothing"},
        {"type": "delta", "text": " \n"},
        {"type": "end", "error": False, "usage": {"in": 9, "out": 0}},
    ],
)
def test_a_turn_called_done_with_nothing_done_in_it_has_failed(before: dict[str, object]) -> None:
    """An agent whose prompt was blocked calls that a success; a script would take it for its answer."""
    verdict = judge(before, {"type": "end", "error": False, "why": "blocked by a hook"})
    assert (verdict.is_done, verdict.has_failed, verdict.is_idle) == (False, True, True)
    assert verdict.why == "blocked by a hook"


@pytest.mark.parametrize(
    "work",
    [
        {"type": "delta", "text": "It subtracts."},
        {"type": "assistant", "message": {"content": [{"type": "tool_use", "name": "Read", "id": "c1"}]}},
        {"type": "end", "error": False, "usage": {"in": 9, "out": 1}},
    ],
)
def test_a_word_a_call_or_a_token_written_is_work(work: dict[str, object]) -> None:
    """Some turns end without a word to the user, and were worked on."""
    verdict = judge(work, {"type": "end", "error": False, "why": "It subtracts."})
    assert (verdict.is_done, verdict.has_failed, verdict.why) == (True, False, "")


def test_an_agent_whose_adapter_tells_only_ends_is_believed() -> None:
    """Whoever describes no words of an agent cannot be told that it had none."""
    verdict = TurnVerdict([saying for saying in SAYS if saying.means in {"done", "failed"}])
    verdict.hear({"type": "end", "error": False})
    assert (verdict.is_done, verdict.is_idle) == (True, False)


def test_a_failure_stands_whatever_is_said_after_it() -> None:
    """Agents tidy up after an error, and call that a success."""
    both = judge({"type": "end", "error": False}, {"type": "end", "error": True, "why": "no\nquota\x1b[0m"})
    assert (both.is_done, both.why) == (False, "no quota")
    after = judge({"type": "end", "error": True}, {"type": "end", "error": False})
    assert (after.is_done, after.has_failed, after.why) == (False, True, "")


@pytest.mark.parametrize("usd", [float("inf"), float("nan"), 10**400, -1, True, 1e12])
def test_what_is_no_amount_of_money_is_not_told(usd: object) -> None:
    """One absurd number must not end the following of a turn, nor print what is no JSON."""
    (said,) = read_record(SAYS, {"type": "end", "usage": {"in": 10**30, "out": 7}, "usd": usd})
    assert (said.cost, said.tokens) == (None, {"output": 7})


def test_a_plan_is_told_whole_or_step_by_step() -> None:
    """One agent sends the list each time, another what became of one task."""
    whole = StreamRule(means="plan", steps=Steps(each="items", text="text", status="completed"))
    items = [{"text": "a", "completed": True}, {"text": "b", "completed": False}, "odd"]
    (said,) = read_record((whole,), {"items": items})
    assert (said.is_whole, said.steps) == (
        True,
        (RunPlanStep(text="a", status="done"), RunPlanStep(text="b", status="pending"), RunPlanStep()),
    )
    (odd,) = read_record((whole,), {"items": "none"})
    assert odd.steps == ()
    step = StreamRule(means="plan", steps=Steps(id="id", status="to"))
    (one,) = read_record((step,), {"id": 7, "to": "in_progress"})
    assert (one.is_whole, one.steps) == (False, (RunPlanStep(id="7", status="doing"),))
    (unknown,) = read_record((step,), {"id": "7", "to": "paused"})
    assert unknown.steps == (RunPlanStep(id="7"),)


def test_an_edit_names_its_file_and_a_tool_what_it_is_about() -> None:
    """Who shows them needs no list of the agents' tools."""
    edit = StreamRule(means="edit", path="file", text="diff", id="call")
    assert list(read_record((edit,), {"file": "a.py", "diff": "+x", "call": "c"})) == [
        OutputItem("edit", text="+x", name="a.py", call="c")
    ]
    tool = StreamRule(means="tool", name="name", about="plan")
    assert list(read_record((tool,), {"name": "todo"})) == [OutputItem("tool", name="todo", about="plan")]


REFUSES = (
    *SAYS,
    StreamRule(means="refused", where=Where(equals={"type": "over"}), each="denied", name="tool"),
    StreamRule(means="refused", where=Where(equals={"type": "result", "why": "forbidden"}), id="call"),
)


def test_tools_an_agent_was_not_allowed_to_use_are_named_once_in_their_order() -> None:
    """An answer that rests on work nobody allowed must not look like one that does not."""
    verdict = TurnVerdict(REFUSES)
    call = [{"type": "tool_use", "name": "Shell", "id": "c1", "input": {}}]
    verdict.hear({"type": "assistant", "message": {"content": call}})
    verdict.hear({"type": "result", "why": "forbidden", "call": "c1"})
    verdict.hear({"type": "result", "why": "forbidden", "call": "never-made"})
    verdict.hear({"type": "over", "denied": [{"tool": "Edit"}, {"tool": "Shell"}, {"tool": ""}, "no tool"]})
    assert verdict.refused == ("Shell", "Edit")


def test_a_turn_in_which_everything_was_refused_is_idle() -> None:
    """Being refused is no work."""
    verdict = TurnVerdict(REFUSES)
    verdict.hear({"type": "over", "denied": [{"tool": "Edit"}]})
    verdict.hear({"type": "end", "error": False, "why": "nothing to do"})
    assert (verdict.is_idle, verdict.refused) == (True, ("Edit",))


def test_refusals_without_end_are_bounded() -> None:
    """Whatever an agent writes, the journal's line stays one."""
    verdict = TurnVerdict(REFUSES)
    verdict.hear({"type": "over", "denied": [{"tool": f"{'x' * 200}{number}"} for number in range(100)]})
    verdict.hear({"type": "over", "denied": [{"tool": f"tool {number}"} for number in range(100)]})
    assert len(verdict.refused) == 20
    assert max(map(len, verdict.refused)) == 100
