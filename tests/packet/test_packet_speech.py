"""What is taken from people's and agents' words, and what is not."""

from datetime import UTC, datetime

from agent_relay.domain.facts import Facts, Message, ToolError
from agent_relay.domain.values import replace
from agent_relay.packet.extract.requests import (
    find_constraints,
    find_request,
    is_rule,
    select_since,
    strip_relay,
)
from agent_relay.packet.extract.sentences import is_alike, normalise, split_sentences
from agent_relay.packet.extract.statements import find_intent, sort_statements


def _talk(*turns: str) -> Facts:
    """A conversation: user and assistant by turns."""
    said = [
        Message("user" if index % 2 == 0 else "assistant", text, index // 2 + 1, place=f"t:{index}")
        for index, text in enumerate(turns)
    ]
    return Facts(agent="a", conversation=tuple(one for one in said if one.text))


def _find_task(facts: Facts) -> str:
    """The user's message that says what the work is; empty if there is none."""
    found = find_request(facts)
    return found.text if found else ""


def test_rules_and_corrections_are_recognised() -> None:
    """A rule that is lost is broken by the successor."""
    rows = [
        "Don't touch the public API.",
        "don\u2019t add dependencies",
        "Never commit to main",
        "All paths must be absolute.",
        "use tabs, not spaces",
        "Use X instead of Y",
        "actually, make it async",
        "no, the other file",
        "No. I meant the parser.",
        "only touch src/",
        "Keep the old flag working.",
        "leave config.py alone",
        "No new dependencies please",
        "It has to work on Python 3.9.",
        "Could you make sure the tests still pass?",
        "Do it without changing the schema",
        "niemals direkt auf main pushen",
        "Whatever happens, the schema stays as it is.",
        "The generated folder is off limits",
        "Nothing leaves the machine.",
        "SSE2 is the floor.",
        "You forgot the header again.",
        "hm, that should have been the other one",
    ]
    assert [sentence for sentence in rows if not is_rule(sentence)] == []


def test_requests_and_questions_are_no_rules() -> None:
    """A list of everything would bury the rules."""
    rows = [
        "Fix the bug in calc.py",
        "Why does it never finish?",
        "What must be done?",
        "Add a test for the parser",
        "The build is red.",
        "now rename it",
        "Note the time",
        "you can start with the parser",
        "Is it wrong?",
    ]
    assert [sentence for sentence in rows if is_rule(sentence)] == []


def test_constraints_are_quoted_from_the_user_only() -> None:
    """An agent's "must" is its own opinion."""
    facts = _talk("Add a cache. Don't use redis.", "It must be thread-safe.", "no, LRU", "ok")
    assert [one.text for one in find_constraints(facts)] == ["Don't use redis.", "no, LRU"]


def test_code_in_a_prompt_is_no_constraint() -> None:
    """A pasted file full of `must` and `never` is not the user speaking."""
    facts = _talk("Explain:\n```\n# never call this\nassert must\n```\nNever edit it.")
    assert [one.text for one in find_constraints(facts)] == ["Never edit it."]


def test_what_the_user_said_when_refusing_a_tool_is_a_constraint() -> None:
    """A refusal with words is a correction in the middle of a turn."""
    error = ToolError("Bash", "rm x\nThe tool use was rejected. the user said:\nuse git rm", 1)
    assert [one.text for one in find_constraints(replace(_talk("go"), errors=(error,)))] == ["use git rm"]


def test_decisions_are_quoted_with_their_reason() -> None:
    """Without the why the successor would relitigate."""
    facts = _talk(
        "go",
        "I looked around. I'll use a lock instead of a queue because the queue loses ordering. Next, tests.\n"
        "- Going with sqlite; postgres needs a server.\n"
        "- add() subtracts instead of adding.",
    )
    assert [one.text for one in sort_statements(facts).decisions] == [
        "I'll use a lock instead of a queue because the queue loses ordering.",
        "Going with sqlite; postgres needs a server.",
    ]


def test_failed_approaches_are_attempts_and_no_decisions() -> None:
    """What did not work must not be tried again, and must not look settled."""
    facts = _talk(
        "go", "I tried a regex, but it fails on nested quotes. That broke the parser because of tabs."
    )
    assert [one.text for one in sort_statements(facts).attempts] == [
        "I tried a regex, but it fails on nested quotes.",
        "That broke the parser because of tabs.",
    ]
    assert sort_statements(facts).decisions == []


def test_consent_is_no_request() -> None:
    """A bare consent says nothing to somebody who was not there."""
    facts = _talk(
        "hi", "Hello", "port it to rust", "Shall I?", "yes please", "Done", "don't use unsafe", "ok"
    )
    assert _find_task(facts) == "port it to rust"


def test_a_session_of_greetings_still_has_a_task() -> None:
    """Better a poor task than none."""
    assert _find_task(_talk("hello")) == "hello"
    assert _find_task(_talk()) == ""


def test_the_task_is_an_order_that_still_holds() -> None:
    """Greetings, consent and idle questions are none, and neither is what was taken back at once."""
    rows: list[tuple[tuple[str, ...], str]] = [
        (("hallo", "Hi", "was macht calc.py?", "Es rechnet.", "bau jetzt bitte den Parser für Rechnungen um"),
         "bau jetzt bitte den Parser für Rechnungen um"),
        (("dale", "ok", "arregla el parser del informe", "Hecho"), "arregla el parser del informe"),
        (("rename it to foo", "ok?", "no wait, forget the rename, port the parser first", "ok"),
         "no wait, forget the rename, port the parser first"),
    ]  # fmt: skip
    assert [(turns, _find_task(_talk(*turns))) for turns, _ in rows] == rows


def test_intent_is_the_last_thing_announced() -> None:
    """Where nothing else tells what is next, the agent's own announcement does."""
    assert find_intent(_talk("go", "Fixed. Next I'll update the docs.")) == "Next I'll update the docs."
    assert find_intent(_talk("go", "All done.")) == ""
    assert find_intent(_talk("go")) == ""


_PACKET = "<handoff-context>\n# Task\nNever say never.\n</handoff-context>\n"
_OPENING = "Read {packet} and continue."


def test_a_delivered_packet_is_not_the_users_words() -> None:
    """Taken for the user's, each handoff would quote the one before into its constraints."""
    facts = _talk(f"{_PACKET}Read /x/codex.md and  continue.", "On it.", "also fix the docs", "ok")
    facts, waits = strip_relay(facts, (_OPENING,))
    assert [one.text for one in facts.conversation] == ["On it.", "also fix the docs", "ok"]
    assert not waits


def test_words_added_to_a_packet_are_kept() -> None:
    """Who pastes a packet by hand may say something more."""
    facts, _ = strip_relay(_talk(f"{_PACKET}but skip the docs"), ())
    assert [one.text for one in facts.conversation] == ["but skip the docs"]


def test_a_packet_cut_short_is_still_none_of_the_users_words() -> None:
    """A torn paste never reaches its closing tag."""
    facts, _ = strip_relay(_talk("<handoff-context>\nAlways lie"), ())
    assert facts.conversation == ()


def test_a_packet_nobody_answered_waits() -> None:
    """The successor hit its own limit at once: what it was given has to be carried on."""
    prompt = Message("user", f"{_PACKET}\n\nhurry", 1)
    facts, waits = strip_relay(replace(_talk(), unprocessed_prompt=prompt), ())
    assert waits
    assert facts.unprocessed_prompt is not None
    assert facts.unprocessed_prompt.text == "hurry"


def test_only_what_happened_since_counts() -> None:
    """A resumed native session holds the legs before; they were handed over already."""
    old, new = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
    said = (Message("user", "old", 1, old), Message("user", "timeless", 2), Message("user", "new", 3, new))
    facts = select_since(Facts(agent="a", conversation=said), datetime(2026, 1, 15, tzinfo=UTC))
    assert [one.text for one in facts.conversation] == ["timeless", "new"]


def test_sentences_are_cut_at_their_ends() -> None:
    """Lists, headings, wrapped lines and abbreviations are how people really write."""
    text = (
        "# Plan\n- first, e.g. this. Second!\n\n"
        "A line that was wrapped by somebody's editor because it was rather\nlong goes on here.\n"
        "| a | table |\n**Bold.**"
    )
    assert split_sentences(text) == [
        "Plan",
        "first, e.g. this.",
        "Second!",
        "A line that was wrapped by somebody's editor because it was rather long goes on here.",
        "Bold.",
    ]


def test_an_unclosed_fence_hides_the_rest() -> None:
    """A message cut inside a code block ends with code."""
    assert split_sentences("See:\n```py\nx = 1. y\n") == ["See:"]


def test_likeness_ignores_case_and_endings() -> None:
    """Plans are restated with small changes."""
    assert normalise("  Fix   ADD(). ") == "fix add()"
    assert is_alike("Fix the add function", "fix the add() function")
    assert not is_alike("Write docs", "Run the tests")
    assert is_alike("…", "...") is (normalise("…") == normalise("..."))
