"""Redaction takes as long as its text is long, whatever that is made of."""

import time
from string import punctuation

import pytest

from agent_relay.redact.text import list_literals, redact_text
from tests.support.sizes import sized

pytestmark = pytest.mark.size("test")

_LENGTH = 3_000
_LONGER = 8
# Linear work grows eight times, what takes the square 64 times; a busy machine is somewhere between.
_MOST_GROWTH = 26
_WORTH_A_LOOK_S = 0.1
_AROUND = ("", "\n", "\\n")


def _measure(text: str) -> float:
    began = time.thread_time()
    redact_text(text)
    return time.thread_time() - began


def _is_slow(unit: str) -> bool:
    texts = [unit * (length // len(unit)) + "!" for length in (_LENGTH, _LENGTH * _LONGER)]
    if _measure(texts[0]) * _LONGER < _WORTH_A_LOOK_S:
        return _measure(texts[1]) > _WORTH_A_LOOK_S * _LONGER
    short, long = (min(_measure(text) for _ in range(2)) for text in texts)
    return long > short * _MOST_GROWTH


@pytest.mark.size("every")
@pytest.mark.parametrize("around", sized(_AROUND, [""], name=repr))
def test_runs_of_characters_and_of_the_rules_own_words_take_as_long_as_they_are(around: str) -> None:
    """3,200 backslashes took 8 s, 12,000 froze every daemon that read them."""
    units = [*punctuation, " ", "\t", "\r", "\0", "0", "A", *list_literals()]
    assert [unit for unit in units if _is_slow(unit + around)] == []


@pytest.mark.parametrize("sign", ["\\", "x", " ", "-", "="])
def test_a_megabyte_of_one_character_takes_no_longer_than_one_of_prose(sign: str) -> None:
    """One line without an end is what a broken agent leaves."""
    prose = _measure("What was asked for stands here, and what came of it.\n" * (1 << 20 >> 6))
    assert _measure(sign * (1 << 20)) < prose * 20


@pytest.mark.parametrize("name", ["pwd ", "pwd=", "pwd=\n", "secret=", "token=", "password="])
def test_a_telling_name_again_and_again_costs_a_few_times_what_prose_does(name: str) -> None:
    """Each one's line was searched from each of its last three hundred characters: fifteen times prose.

    Without blanks, each was a value up to its thousandth character, judged sixteen times over: as slow.
    """
    length = 80_000
    prose = "What was asked for stands here, and what came of it.\n" * (length // 53)
    assert min(_measure(name * (length // len(name))) for _ in range(3)) < 10 * min(
        _measure(prose) for _ in range(3)
    )
