"""Ordinary talk, which makes up most of real sessions and which no successor needs.

`talk.case` holds exchanges in the language of scripts, `talk.toml` sentences that make reports longer; both
with files {f} and {g} and numbers {n} and {m} to be filled in.
"""

import functools
import os
import random
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tests.fidelity.script import Case, read_step, split_steps
from tests.support.corpus_story import Event

_HERE = os.path.dirname(os.path.abspath(__file__))
_MOST = 30
_BLANK = re.compile(r"\{[fgnm]\}")
_SHORT = 12


def weave(case: Case) -> list[Event]:
    """The events of `case` with ordinary talk in between, never between a question and its answer."""
    events = list(case.events)
    chance = random.Random(f"noise{case.seed}")  # noqa: S311 - the same talk every time
    files = list(_list_paths(case)) or ["README.md"]
    spots = _find_spots(events)
    bank = list(read_bank())
    chance.shuffle(bank)
    extra: dict[int, list[Event]] = {}
    for exchange in bank[: int(case.meta.get("noise", _MOST)) if spots else 0]:
        block = _fill_exchange(exchange, files, chance)
        extra.setdefault(chance.choice(spots), []).extend(block)
    return [told for place, event in enumerate(events) for told in (*extra.get(place, ()), event)]


@functools.cache
def read_bank() -> tuple[tuple[Event, ...], ...]:
    """The exchanges: a prompt, what the agent does, what it says."""
    with open(os.path.join(_HERE, "talk.case"), encoding="utf-8") as file:
        steps = [read_step(*step) for step in split_steps(file.read())]
    starts = [place for place, event in enumerate(steps) if event.kind == "prompt"]
    return tuple(tuple(steps[at:to]) for at, to in zip(starts, [*starts[1:], len(steps)], strict=True))


@functools.cache
def read_sentences() -> tuple[str, ...]:
    """The sentences of which longer reports are made."""
    return tuple(_read_lists()["sentences"])


@functools.cache
def _read_lists() -> dict[str, list[str]]:
    with open(os.path.join(_HERE, "talk.toml"), "rb") as file:
        return tomllib.load(file)


@functools.cache
def _find_answers() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What in an answer asks for the next prompt, and how a prompt begins that answers what is above it."""
    lists = _read_lists()
    words, signs = "|".join(lists["words"]), "|".join(lists["signs"])
    asks = re.compile("|".join(lists["asks"]), re.MULTILINE)
    return asks, re.compile(rf"(?:{words})\b|{signs}", re.IGNORECASE)


@functools.cache
def list_fragments() -> frozenset[str]:
    """Beginnings of what is ordinary talk: a line that holds one is ordinary talk."""
    texts = list(read_sentences())
    for exchange in read_bank():
        for event in exchange:
            if event.kind == "say":
                texts += re.split(r"(?<=[.;:]) ", event.text)
            elif event.kind == "prompt" and len(event.text) > 24:
                texts.append(event.text)
    pieces = (max(_BLANK.split(text), key=len).strip() for text in texts)
    return frozenset(piece[:34] for piece in pieces if len(piece) >= 18)


def _list_paths(case: Case) -> Iterator[str]:
    aside = case.meta.get("aside")
    for event in case.events:
        is_file = event.kind in ("read", "edit", "create")
        if is_file and not (aside and re.search(aside, event.text)):
            yield event.text


def _find_spots(events: list[Event]) -> list[int]:
    """Places of prompts before which talk may stand: those that answer nothing above them."""
    prompts = [place for place, event in enumerate(events) if event.kind == "prompt"]
    barred = set(_list_barred(events, prompts))
    return [place for place in prompts[1:-2] if place not in barred and not _follows(events, place)]


def _list_barred(events: list[Event], prompts: list[int]) -> Iterator[int]:
    """Places where talk would be taken back, cleared or mistaken for what was interrupted."""
    for place, event in enumerate(events):
        match event.kind:
            case "rewind":
                above = [prompt for prompt in prompts if prompt < place]
                yield from range(above[-int(event.text)], place + 1)
            case "clear":
                yield from range(place + 3)
            case "interrupt":
                yield from range(place - 1, place + 3)
            case "prompt" if event.more.get("held"):
                yield place
            case _:
                pass


def _follows(events: list[Event], place: int) -> bool:
    """Whether a prompt answers what stands right above it."""
    prompt, before = events[place].text, events[place - 1]
    said = next((event.text for event in reversed(events[:place]) if event.kind == "say"), "")
    asks, reacts = _find_answers()
    is_answer = bool(asks.search(said) or reacts.match(prompt))
    return is_answer or len(prompt) < _SHORT or not before.more.get("ends")


def _fill_exchange(exchange: Iterable[Event], files: list[str], chance: random.Random) -> list[Event]:
    """The exchange with names and numbers, most of the time with a longer report at its end."""
    first, second = chance.choice(files), chance.choice(files)
    more, fewer = str(chance.randint(11, 47)), str(chance.randint(3, 9))
    blanks = {"{f}": first, "{g}": second, "{n}": more, "{m}": fewer}
    block = [_fill_event(event, blanks) for event in exchange]
    last = block[-1]
    if last.more.get("ends") and chance.random() < 0.75:
        paragraphs = [
            " ".join(_fill(one, blanks) for one in chance.sample(read_sentences(), chance.randint(3, 5)))
            for _ in range(chance.randint(1, 4))
        ]
        block[-1] = replace(last, text="\n\n".join((last.text, *paragraphs)))
    return block


def _fill_event(event: Event, blanks: dict[str, str]) -> Event:
    more = {
        key: _fill(value, blanks) if isinstance(value, str) else value for key, value in event.more.items()
    }
    return replace(event, text=_fill(event.text, blanks), more=more)


def _fill(text: str, blanks: dict[str, str]) -> str:
    for blank, value in blanks.items():
        text = text.replace(blank, value)
    return text
