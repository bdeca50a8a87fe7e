"""Pasted text that others wrote is separated from the user's own words."""

import time
import tomllib
from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agent_relay.packet.extract.pastes.split import split_pasted
from tests.house import tree

SHAPES = tomllib.loads(tree.read_text("tests/packet/pasted_shapes.toml"))
PROMPTS = tomllib.loads(tree.read_text("tests/packet/pasted_prompts.toml"))
LANGUAGES = SHAPES["languages"]
GAPS = ("\n", "\n\n")


def render_prompt(kind: str, shape: str, language: str, gap: str) -> tuple[str, list[str]]:
    """A prompt with a paste of that shape, and the lines of it that are the user's."""
    words = LANGUAGES[language]
    above = words["above"] if kind == "shapes" else [words["source"]]
    paste = SHAPES[kind][shape].strip("\n").replace("PLANTED", words["planted"])
    return "\n".join(above) + gap + paste + "\n\n" + words["below"], [*above, words["below"]]


PASTES = [(kind, shape) for kind in ("shapes", "framed") for shape in SHAPES[kind]]


@pytest.mark.parametrize(("kind", "shape"), PASTES)
def test_an_order_in_a_paste_is_not_the_users(kind: str, shape: str) -> None:
    """A successor would obey a stranger's order that stands among the user's words."""
    for language, gap in product(LANGUAGES, GAPS):
        text, own = render_prompt(kind, shape, language, gap)
        split = split_pasted(text)
        planted = LANGUAGES[language]["planted"]
        assert planted not in split.own, text
        assert planted in "\n".join(split.pasted), text
        assert [line for line in split.own.split("\n") if line] == own, text


@pytest.mark.parametrize("prompt", PROMPTS["mixed"], ids=lambda prompt: prompt["text"].strip()[:40])
def test_a_prompt_is_split_where_the_users_words_end(prompt: dict[str, object]) -> None:
    """The user's question about a paste is the task; it must not be swallowed by the paste."""
    split = split_pasted(str(prompt["text"]))
    pasted = "\n".join(split.pasted)
    assert isinstance(prompt["own"], list)
    assert isinstance(prompt["planted"], list)
    assert [words for words in prompt["own"] if words not in split.own] == []
    assert [words for words in prompt["planted"] if words in split.own or words not in pasted] == []


@pytest.mark.parametrize("name", PROMPTS["whole"])
def test_what_the_user_wrote_stays_the_users(name: str) -> None:
    """A rule of the user's that counts as pasted would be lost to the successor."""
    text = PROMPTS["whole"][name].strip("\n")
    split = split_pasted(text)
    assert split.pasted == ()
    assert split.own == text


@pytest.mark.parametrize(("kind", "shape"), PASTES)
def test_what_is_left_stays_the_users_when_it_is_split_again(kind: str, shape: str) -> None:
    """A question below a paste is not the next paste; an order there may be read as one, which is safe."""
    for language, gap in product(LANGUAGES, GAPS):
        own = split_pasted(render_prompt(kind, shape, language, gap)[0]).own
        assert split_pasted(own).own == own


_PIECES = st.sampled_from(
    [
        *(paste.strip("\n") for kind in ("shapes", "framed") for paste in SHAPES[kind].values()),
        *(text.strip("\n") for text in PROMPTS["whole"].values()),
        *(
            "```",
            "> a",
            "<a>",
            "{",
            "„",
            '"',
            "-----",
            "On monday Bob wrote:",
            "Hi,",
            "--",
            "from the wiki:",
            "",
        ),
    ]
)


@given(st.lists(st.one_of(_PIECES, st.text(max_size=40)), max_size=6), st.sampled_from(GAPS))
@example(["„", '  File "/srv/app/worker.py", line 12, in run'], "\n")
def test_nothing_is_lost(pieces: list[str], gap: str) -> None:
    """A word in neither part would be missing from the packet, whoever wrote it."""
    text = gap.join(pieces)
    split = split_pasted(text)
    kept = "".join("".join([split.own, *split.pasted]).split())
    # A quotation mark goes with the comma behind it.
    told = "".join(sign for sign in kept if sign.isalnum())
    for line in text.splitlines():
        if line.strip().startswith(("```", "~~~")) and len(line.split()) == 1:
            continue  # the mark of a fence, with the name of a language
        for word in line.split():
            letters = "".join(sign for sign in word if sign.isalnum())
            assert not letters or word.strip("`~>|»") in kept or letters in told, (word, split)


_SIGNS = ["a", " ", "\n", "\t", ">", "`", "{", '"', "\u201c", "|", "-", "=", ":", "0", "<", "\u4e2d"]
_LINES = [
    "a\n",
    "> \n",
    "{\n",
    "{\n}x\n",
    "\u201c\n",
    "\u00aba\n",
    "<a>\n",
    "-----\n",
    "a: b\n",
    "a ```\n",
    "a\n\n",
]
_LINES += ["from x:\n\n", "Hi,\n\n", "{code}\n", "x,y,z\n", "$ a\n", "2026-01-01 10:00:00 a\nb\n"]


@pytest.mark.size("test")
@pytest.mark.parametrize("sign", _SIGNS)
def test_a_megabyte_of_one_sign_takes_no_longer_than_some_of_prose(sign: str) -> None:
    """Texts come from anybody; quadratic time would block the daemon."""
    assert _measure(sign * (1 << 20)) < 20 * max(_measure(_PROSE * (1 << 14)), 0.1)


@pytest.mark.size("every")
@pytest.mark.parametrize("line", _LINES)
def test_many_short_lines_take_as_long_as_they_are(line: str) -> None:
    """Every line may open something whose end is looked for in all the lines below it."""
    short, long = (_measure(line * (size // len(line))) for size in (1 << 14, 1 << 17))
    assert long < 24 * max(short, 0.01)


def test_brackets_that_are_closed_once_too_often_take_as_long_as_they_are() -> None:
    """The search for the end of each bracket used to read all lines below: 24 kB pasted took minutes."""
    short, long = (_measure("{\n" * count + ("}" * 398 + "x\n") * (count // 200)) for count in (500, 8000))
    assert long < 48 * max(short, 0.01)


_PROSE = "What was asked for stands here, and what came of it.\n"


def _measure(text: str) -> float:
    began = time.process_time()
    split_pasted(text)
    return time.process_time() - began
