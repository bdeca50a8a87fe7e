import json
import os
from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import load_adapter
from agent_relay.domain.documents.adapter import Adapter, Answer
from agent_relay.domain.facts import Facts, Message
from agent_relay.packet.narrative import (
    NarrativeOutcome,
    NarrativeResult,
    build_request,
    fail,
    has_messages,
    read_answer,
    render_narrative,
)

HEADINGS = [
    "## Goal",
    "## Rules of the user",
    "## Decisions in force",
    "## Given up or disproved",
    "## State on disk",
    "## Failing now",
    "## Files and roles",
    "## Next step",
    "## Not to be believed",
]
REAL = {
    "claude": (
        (
            '{"type":"system","subtype":"init","tools":[]}\n'
            '{"type":"assistant","message":{"content":[{"type":"text","text":"## Goal"}]}}\n'
            '{"type":"result","subtype":"success","is_error":false,"result":"## Goal\\nAdd two numbers."}\n'
        ),
        (
            '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,'
            '"result":"You\'ve hit your session limit \\u00b7 resets 12:32pm (UTC)"}\n'
        ),
        "You've hit your session limit · resets 12:32pm (UTC)",
    ),
    "codex": (
        (
            '{"type":"thread.started","thread_id":"01a1"}\n{"type":"turn.started"}\n'
            '{"type":"item.completed","item":{"id":"item_0","type":"error","message":"ignoring a setting"}}\n'
            '{"type":"error","message":"Reconnecting... 1/5 (429 Too Many Requests)"}\n'
            '{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Let me think."}}\n'
            '{"type":"item.completed","item":{"id":"item_2","type":"agent_message",'
            '"text":"## Goal\\nAdd two numbers."}}\n'
            '{"type":"turn.completed","usage":{"input_tokens":36000}}\n'
        ),
        (
            '{"type":"error","message":"You\\u2019ve hit your usage limit."}\n'
            '{"type":"turn.failed","error":{"message":"You\\u2019ve hit your usage limit."}}\n'
        ),
        "You\u2019ve hit your usage limit.",
    ),
    "gemini": (
        (
            '{"type":"init","session_id":"30","model":"auto"}\n'
            '{"type":"message","role":"user","content":"write"}\n'
            '{"type":"message","role":"assistant","content":"Looking.","delta":true}\n'
            '{"type":"tool_use","tool_name":"run_shell_command","parameters":{}}\n'
            '{"type":"tool_result","status":"error","output":"not found"}\n'
            '{"type":"message","role":"assistant","content":"## Goal\\nAdd ","delta":true}\n'
            '{"type":"message","role":"assistant","content":"two numbers.","delta":true}\n'
            '{"type":"result","status":"success","stats":{}}\n'
        ),
        (
            '{"type":"init"}\n{"type":"result","status":"error","error":{"type":"unknown",'
            '"message":"[API Error: You have exhausted your daily quota on this model.]\\nPlease wait"}}\n'
        ),
        "[API Error: You have exhausted your daily quota on this model.] Please wait",
    ),
    "opencode": (
        (
            '{"type":"step_start","part":{"type":"step-start"}}\n'
            '{"type":"text","part":{"type":"text","text":"## Goal\\nAdd two numbers."}}\n'
            '{"type":"step_finish","part":{"type":"step-finish","reason":"stop"}}\n'
        ),
        (
            '{"type":"error","error":{"name":"APIError","data":{"message":"Insufficient credits.",'
            '"statusCode":402}}}\n'
        ),
        "Insufficient credits.",
    ),
}
PLAIN = Answer(format="plain")


def get_answer(agent: str) -> Answer:
    adapter: Adapter = load_adapter(os.path.join(find_builtin_folder(), agent)).adapter
    assert adapter.narrative is not None
    return adapter.narrative.answer


def test_the_document_is_read_out_of_what_the_real_agents_print() -> None:
    """Each prints other records; warnings, retries and first thoughts among them are not the document."""
    assert [
        agent
        for agent in REAL
        if read_answer(get_answer(agent), REAL[agent][0], status=0)
        != NarrativeResult(NarrativeOutcome.WRITTEN, "## Goal\nAdd two numbers.")
    ] == []


@pytest.mark.parametrize("agent", REAL)
def test_a_real_agents_failure_is_told_in_its_own_words(agent: str) -> None:
    """A limit met while writing must not look like a document, whatever status the program ends with."""
    for status in (0, 1, 173):
        told = read_answer(get_answer(agent), REAL[agent][1], status=status)
        assert told.message == f"Handoff failed: {REAL[agent][2]}"


@pytest.mark.parametrize("agent", REAL)
def test_half_an_answer_is_no_document(agent: str) -> None:
    """An agent that was interrupted may end with status 0 and half of its words said."""
    half = REAL[agent][0].rstrip("\n").rpartition("\n")[0]
    assert read_answer(get_answer(agent), half, status=0).message == (
        "Handoff failed: its answer was cut off (status 0)"
    )
    assert read_answer(get_answer(agent), half, status=1, errors="node:1\n\nNo such session\n\n").message == (
        "Handoff failed: No such session"
    )


@pytest.mark.parametrize("agent", REAL)
def test_an_empty_answer_is_told_as_empty(agent: str) -> None:
    """The user must not think that they cancelled it, nor that it failed."""
    answer = get_answer(agent)
    done = {key.replace(".", "|"): value for key, value in answer.done.items()}
    told = read_answer(answer, json.dumps(done) + "\n", status=0)
    assert told.message == "The handoff document is empty: the agent's answer had no text"


def test_an_agent_that_calls_an_empty_answer_an_error_is_told_as_empty() -> None:
    """One agent asks its model four times and then gives up; the user is told the same as of the others."""
    said = (
        '{"type":"message","role":"assistant","content":" ","delta":true}\n'
        '{"type":"error","severity":"error","message":"The model returned an empty response with no text or'
        ' thoughts. This may be a transient API issue; please try again."}\n'
        '{"type":"result","status":"error","stats":{}}\n'
    )
    assert read_answer(get_answer("gemini"), said, status=1).kind is NarrativeOutcome.EMPTY


def test_lines_that_are_no_records_are_passed_over() -> None:
    """Programs print notices of their own between the records."""
    answer = Answer(format="json-lines", when={"type": "text"}, text="part.text", done={"type": "end"})
    output = (
        'Update!\n[1]\n"x"\n{"type":"text","part":7}\n{"type":"text","part":{"text":"all"}}\n{"type":"end"}'
    )
    assert read_answer(answer, output + "\n" + "[" * 100_000, status=0).text == "all"


def test_a_line_separator_of_unicode_does_not_end_a_record() -> None:
    """Programs that print JSON leave U+2028 and others as they are in strings."""
    answer = Answer(format="json-lines", when={"type": "text"}, text="text", done={"type": "end"})
    output = '{"type":"text","text":"one\u2028two"}\n{"type":"end"}\n'
    assert read_answer(answer, output, status=0).text == "one\ntwo"


def test_a_failure_without_words_says_so() -> None:
    """A sentence that ends in a colon and nothing would be no reason."""
    told = read_answer(get_answer("codex"), '{"type":"turn.failed","error":null}', status=1)
    assert told.message == "Handoff failed: the agent gave no reason"


def test_plain_output_is_the_document_where_the_program_ended_well() -> None:
    """The simplest program has nothing but its words and its status."""
    assert read_answer(PLAIN, "\n## Goal\r\nx\x1b[31m!\x1b[0m\x07\n", status=0).text == "## Goal\nx!"
    assert read_answer(PLAIN, " \n", status=0).kind is NarrativeOutcome.EMPTY
    assert read_answer(PLAIN, "half", status=7).message == "Handoff failed: it ended with status 7"
    assert read_answer(PLAIN, "half", status=7, errors="no key\n").message == "Handoff failed: no key"


def test_an_endless_document_is_cut() -> None:
    """It becomes part of a packet; a document longer than most books is no summary."""
    assert len(read_answer(PLAIN, "x" * 100_000, status=0).text) == 64_000


def test_the_reason_of_a_failure_is_one_short_line() -> None:
    """It is shown in the one line relay has at the bottom of an agent's screen."""
    assert fail("a\n\tb \x1b[2J" + "c" * 1000).message == "Handoff failed: a b " + "c" * 296 + "…"


def test_every_outcome_has_its_words() -> None:
    """Users and scripts learn to read them; they do not change."""
    rows: list[tuple[NarrativeResult, str]] = [
        (NarrativeResult(NarrativeOutcome.WRITTEN, "x"), "The handoff document is written"),
        (NarrativeResult(NarrativeOutcome.CANCELLED), "Handoff cancelled"),
        (NarrativeResult(NarrativeOutcome.NOTHING), "Nothing to hand off (no messages yet)"),
        (NarrativeResult(NarrativeOutcome.UNABLE), "This agent cannot write handoff documents"),
    ]
    assert [(told, told.message) for told, _ in rows] == rows


def test_the_request_has_the_fixed_sections_in_their_order() -> None:
    """A successor and a reader know where to look."""
    request = build_request()
    places = [request.index(heading) for heading in HEADINGS]
    assert places == sorted(places)
    assert "use no tools" in request
    assert "Never write secrets" in request
    assert "look at this first" not in request


def test_no_line_of_the_request_looks_like_a_command() -> None:
    """Agents take a line that begins with a slash, an at sign or an exclamation mark for something to do."""
    assert not [line for line in build_request("/clear the list").splitlines() if line[:1] in {"/", "@", "!"}]


def test_the_request_names_the_focus() -> None:
    """What the user wants looked at first is worth most words."""
    assert "say most about it: the parser\n" in build_request("  the parser ")


def test_two_messages_are_the_fewest_that_can_be_handed_off() -> None:
    """A prompt nobody answered is a task, not work to be told about."""
    prompt, answer = Message("user", "go", 1), Message("assistant", "done", 1)
    assert not has_messages(Facts("a"))
    assert not has_messages(Facts("a", conversation=(prompt,), unprocessed_prompt=prompt))
    assert has_messages(Facts("a", conversation=(prompt, answer)))


AT = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)


def keep(moment: str, *prompts_at: int, minutes: int = 0) -> str:
    """The document as a packet made `minutes` later takes it along, prompts given so many minutes later."""
    prompts = tuple(Message("user", "go on", 1, AT + timedelta(minutes=at)) for at in prompts_at)
    answers = (Message("assistant", "done", 1, AT + timedelta(minutes=1)), Message("user", "undated", 1))
    facts = Facts("ann", conversation=(*prompts, *answers))
    now = AT + timedelta(minutes=minutes)
    return render_narrative("## Goal", "09:00 UTC", moment, facts=facts, now=now, fresh_prompts=2)


def test_a_document_says_how_old_it_is() -> None:
    """Its reader must know what it cannot hold."""
    moment = AT.isoformat()
    assert keep(moment) == "(written 09:00 UTC)\n\n## Goal"
    assert keep(moment, minutes=25) == "(written 09:00 UTC; 25 min before this packet)\n\n## Goal"
    one = "(written 09:00 UTC; 25 min before this packet; 1 later prompt is not covered)\n\n## Goal"
    assert keep(moment, -5, 10, minutes=25) == one
    assert "; 2 later prompts are not covered)" in keep(moment, 10, 20, minutes=25)


def test_a_document_too_much_was_asked_after_is_left_out() -> None:
    """It would tell of a state that is long gone; age alone makes nothing stale."""
    assert keep(AT.isoformat(), 10, 20, 24, minutes=25) == ""
    assert keep(AT.isoformat(), minutes=60 * 24 * 7).startswith("(written 09:00 UTC; 10080 min")


def test_a_document_of_an_older_version_has_no_age() -> None:
    """Its moment was kept for people only."""
    rows = ["", "yesterday", "2026-11-22T09:00:00"]
    assert [
        moment for moment in rows if keep(moment, 10, 20, 24, minutes=25) != "(written 09:00 UTC)\n\n## Goal"
    ] == []
