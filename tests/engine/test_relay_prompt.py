"""Telling relay's own words in an agent's records from everybody else's."""

import pytest

from tests.support.monitored import RelayPrompt

OPENING = "Continue the work described in the handoff context above, beginning with its next step."


def expecting(*texts: str, tells_words: bool = True) -> RelayPrompt:
    own = RelayPrompt(tells_words=tells_words)
    own.expect(*texts)
    return own


@pytest.mark.parametrize(
    "recorded",
    [
        OPENING,
        f"<handoff-context>\n{'x' * 90_000}\n</handoff-context>\n\n{OPENING}",
        f"  {OPENING.replace(' ', chr(10))}\r\n",
        f"{OPENING} And be quick.",
    ],
)
def test_a_prompt_with_our_words_is_ours_whatever_its_agent_made_of_the_white_space(recorded: str) -> None:
    """Agents wrap, escape and trim; a person may have added to it before it was sent."""
    own = expecting(OPENING)
    own.hear_prompt(recorded)
    assert own.is_heard


@pytest.mark.parametrize("recorded", ["", "what time is it?", "Continue the work described elsewhere."])
def test_a_prompt_of_somebody_elses_words_is_not_ours(recorded: str) -> None:
    """It says only that the agent works on something."""
    own = expecting(OPENING)
    own.hear_prompt(recorded)
    assert not own.is_heard


def test_a_packet_is_known_by_its_beginning_too() -> None:
    """Who edited what stood in the line may have taken the last sentence away."""
    own = expecting(OPENING, "<handoff-context>\nclaude worked here before you, and hit its limit at nine.")
    own.hear_prompt("<handoff-context>\nclaude worked here before you, and hit its limit at nine. So?")
    assert own.is_heard


def test_what_was_heard_before_it_was_asked_for_counts() -> None:
    """A new daemon reads the records before it knows how far the delivery had come."""
    own = RelayPrompt(tells_words=True)
    own.hear_prompt(f"<handoff-context>{'y' * 90_000}</handoff-context> {OPENING}")
    own.expect(OPENING)
    assert own.is_heard
    own.expect("something else altogether")
    assert not own.is_heard


def test_a_record_that_does_not_say_whose_words_it_has_is_searched_for_long_ones() -> None:
    """One agent tells of a prompt in one event, and of its words in another."""
    own = expecting(OPENING, tells_words=False)
    own.hear({"type": "message.part.updated", "properties": {"part": {"type": "text", "text": OPENING}}})
    assert own.is_heard


def test_short_words_are_not_looked_for_everywhere() -> None:
    """`fix it` stands in many a path; where nothing else can tell, the screen has to."""
    own = expecting("fix it", tells_words=False)
    own.hear({"cwd": "/home/dev/fixit"})
    assert not own.is_heard
    assert not own.is_comparable
    assert expecting("fix it").is_comparable
    assert not expecting("?!").is_comparable
