"""Input at the relay prompt comes in whole keys and answers, wherever reads end, apart from pastes."""

import time

from agent_relay.client.attach.prompt_input import PromptInput


class Reads:
    """Input as it comes, read by read; `None` at its end."""

    def __init__(self, *parts: bytes) -> None:
        self.parts = list(parts)

    def __call__(self, *, wait: bool) -> bytes | None:  # noqa: ARG002 - one read is as good as another here
        return self.parts.pop(0) if self.parts else None


def take_everything(*parts: bytes) -> list[bytes]:
    """All units."""
    given, units = PromptInput(Reads(*parts)), []
    while (unit := given.take()) is not None:
        units.append(unit)
    return units


UNITS = [
    b"a", "ü".encode(), "中".encode(), "😀".encode(), b"\r", b"\x7f", b"\x1b[A", b"\x1b[1;5C", b"\x1bOP",
    b"\x1b[M !!", b"\x1b[<0;10;20M", b"\x1ba", b"\x1b]", b"\x1bP", b"\x1b[?62;22c", b"\x1bP>|term\x1b\\",
    b"\x1b]11;rgb:0000/0000/0000\x1b\\", b"\x1b]11;rgb:0000/0000/0000\x07",
]  # fmt: skip


def test_keys_and_answers_are_whole() -> None:
    """An arrow taken apart would leave the prompt and type a bracket and a letter."""
    assert [unit for unit in UNITS if take_everything(b"x" + unit + b"y") != [b"x", unit, b"y"]] == []


def test_sequences_cut_by_a_read_are_waited_for() -> None:
    """Only Escape alone is a key."""
    assert take_everything(b"\x1b[", b"1;5", b"C") == [b"\x1b[1;5C"]
    assert take_everything(b"\x1b]11;rgb", b":0/0/0\x1b", b"\\") == [b"\x1b]11;rgb:0/0/0\x1b\\"]
    assert take_everything(b"\x1b", b"a") == [b"\x1b", b"a"]
    assert take_everything(b"\x1b\x1b") == [b"\x1b", b"\x1b"]


def test_an_answer_that_never_ends_ends_at_the_next_key() -> None:
    """A torn answer must not make the prompt deaf."""
    assert take_everything(b"\x1b]11;rgb\r") == [b"\x1b]11;rgb", b"\r"]
    assert take_everything(b"\x1b]11;rgb\x1b[A") == [b"\x1b]11;rgb", b"\x1b[A"]
    assert take_everything(b"\x1b]11;" + b"x" * 5000, b"\r") == [b"\x1b]11;" + b"x" * 5000, b"\r"]


def test_a_paste_is_told_from_keys_wherever_it_is_cut() -> None:
    """A line end within a paste is no Enter."""
    data = b"a\x1b[200~one\rtwo\x1b[Athree\x1b[201~b"
    for cut in range(len(data) + 1):
        given, pasted, typed = PromptInput(Reads(data[:cut], data[cut:])), b"", b""
        while True:
            was_in_paste = given.in_paste
            unit = given.take()
            if unit is None:
                break
            if was_in_paste or given.in_paste:
                pasted += unit
            else:
                typed += unit
        # A read that ends in Escape alone is an Escape key, as everywhere.
        if cut != 2:
            assert (typed, pasted) == (b"ab", b"\x1b[200~one\rtwo\x1b[Athree\x1b[201~"), cut


def test_what_is_left_is_handed_over_as_it_is() -> None:
    """It is the agent's."""
    given = PromptInput(Reads(b"abc\x1b[200~de", b"f"))
    assert given.take() == b"a"
    assert given.take_rest() == b"bc\x1b[200~def"
    assert given.take_rest() == b""


def test_a_pasted_megabyte_takes_as_long_as_it_is() -> None:
    """Without marks of a paste each byte is a key: taken off one by one they took half a minute."""

    def measure_s(length: int) -> float:
        began = time.thread_time()
        assert len(take_everything(b"x" * length)) == length
        return time.thread_time() - began

    assert measure_s(16 * 32_768) < 48 * min(measure_s(32_768) for _ in range(3))
