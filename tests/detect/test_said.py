from agent_relay.detect._conversation import LegConversation
from agent_relay.domain.limits import Record, Source


def note(said: LegConversation, text: str) -> None:
    said.hear(Record(Source.TRANSCRIPT, {"text": text}))


def test_words_are_found_through_markup_and_wrapping() -> None:
    """A screen shows neither backticks nor the line breaks of the text."""
    said = LegConversation(())
    note(said, "the dialog says: **Usage limit**\n  reached for `all`")
    assert said.contains("Usage limit reached for all")
    assert not said.contains("Usage limit reached for none")


def test_memory_of_words_is_bounded() -> None:
    """A long session must not grow the daemon."""
    said = LegConversation(())
    note(said, "first words")
    for _ in range(6):
        note(said, "y" * 100_000)
    assert not said.contains("first words")


def test_only_transcripts_are_conversation() -> None:
    """A hook proves nothing about who said what."""
    said = LegConversation(())
    said.hear(Record(Source.HOOK, {"text": "words"}))
    assert not said.heard
    assert not said.contains("words")
