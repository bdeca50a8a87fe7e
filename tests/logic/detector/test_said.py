from agent_relay.domain.signal import Record, Source
from agent_relay.logic.detector.said import Said


def note(said: Said, text: str) -> None:
    said.hear(Record(Source.TRANSCRIPT, {"text": text}))


def test_words_are_found_through_markup_and_wrapping() -> None:
    """A screen shows neither backticks nor the line breaks of the text."""
    said = Said(())
    note(said, "the dialog says: **Usage limit**\n  reached for `all`")
    assert said.contains("Usage limit reached for all")
    assert not said.contains("Usage limit reached for none")


def test_memory_of_words_is_bounded() -> None:
    """A long session must not grow the daemon."""
    said = Said(())
    note(said, "first words")
    for _ in range(6):
        note(said, "y" * 100_000)
    assert not said.contains("first words")


def test_only_transcripts_are_conversation() -> None:
    """A hook proves nothing about who said what."""
    said = Said(())
    said.hear(Record(Source.HOOK, {"text": "words"}))
    assert not said.heard
    assert not said.contains("words")
