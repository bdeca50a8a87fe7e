"""An order in a text that the user pasted is marked as others' wherever a packet quotes it."""

import os
import tomllib
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from agent_relay.faces.cli.session.packet_transfer import build_offline
from tests.house import tree
from tests.support.corpus import write_events
from tests.support.corpus_story import Event
from tests.support.told_chain import list_texts

pytestmark = pytest.mark.size("test")


SHAPES = tomllib.loads(tree.read_text("tests/packet/pasted_shapes.toml"))
LANGUAGES = ("en", "de", "es", "zh")
FORMATS = ("claude", "codex")
CASES = [
    (kind, shape, language)
    for kind in ("shapes", "framed")
    for shape, language in product(SHAPES[kind], LANGUAGES)
]
OWN = {
    "en": ("the worker must restart by itself after a crash", "always keep the old name of the queue"),
    "de": (
        "der Worker muss nach einem Absturz von selbst starten",
        "behalte immer den alten Namen der Queue",
    ),
    "es": ("el worker tiene que arrancar solo tras una caída", "nunca cambies el nombre de la cola"),
    "zh": ("工作进程崩溃后必须自动重启", "永远不要改队列的旧名字"),
}
"""The task, and a rule of the user's own."""
LATER = {
    "en": "the second one, and this came in meanwhile",
    "de": "das zweite, und das kam inzwischen rein",
    "es": "la segunda, y esto llegó mientras tanto",
    "zh": "第二个",
}
SAYS_PASTED = "pasted with it and written by others: "
HEADS_PASTE = "Pasted with it by the user, and written by others:"
MARKED_FIELDS = ("pasted", "task_pasted")


def render_paste(kind: str, shape: str, language: str) -> str:
    """The paste with its planted order; one that is prose below the line that says where it is from."""
    words = SHAPES["languages"][language]
    paste = str(SHAPES[kind][shape]).strip("\n").replace("PLANTED", words["planted"])
    return f"{words['source']}\n{paste}" if kind == "framed" else paste


def list_events(paste: str, language: str) -> Iterator[Event]:
    """A session whose task, whose answer to options, whose rule and whose last prompt bring the paste."""
    task, rule = OWN[language]
    below = SHAPES["languages"][language]["below"]
    yield Event("prompt", f"{task}\n\n{paste}")
    yield Event("say", "Two ways:\n\n1) a supervisor\n2) a retry in the loop\n\nWhich one?")
    yield Event("prompt", f"{LATER[language]}\n{paste}")
    yield Event("run", "make test", {"exit": 1, "output": "FAILED test_loop.py::test_restart"})
    yield Event("say", "The retry is in, one test fails.")
    yield Event("prompt", f"{rule}\n{paste}\n\n{below}")
    yield Event("say", "It stays as it is.")
    yield Event("prompt", f"{below}\n\n{paste}")
    yield Event("run", "git status --short", {"exit": 0, "output": "M loop.py"})
    yield Event("cut", "")


def list_unmarked(text: str, planted: str) -> list[str]:
    """The lines of a packet that hold the order, or its beginning, and do not say that others wrote it."""
    found, is_marked = [], False
    for line in text.splitlines():
        is_marked = line == HEADS_PASTE or (is_marked and line.startswith(">"))
        if planted[:20] in line and not is_marked and SAYS_PASTED not in line:
            found.append(line)
    return found


def leave_marked(document: object) -> object:
    """The document without the fields that hold what others wrote."""
    match document:
        case dict():
            return {key: leave_marked(part) for key, part in document.items() if key not in MARKED_FIELDS}
        case list():
            return [leave_marked(part) for part in document]
        case _:
            return document


@pytest.mark.parametrize(("kind", "shape", "language"), CASES)
def test_a_strangers_order_is_marked_as_a_strangers(
    kind: str, shape: str, language: str, tmp_path: Path
) -> None:
    """A successor that took it for the user's would obey whoever wrote the mail."""
    agent, target = FORMATS if LANGUAGES.index(language) % 2 else FORMATS[::-1]
    paste, planted = render_paste(kind, shape, language), SHAPES["languages"][language]["planted"]
    folder = os.fspath(tmp_path / "transcript")
    path = write_events(agent, list_events(paste, language), folder, cwd=os.fspath(tmp_path / "gone"))
    packet, text = build_offline(agent, path, target)
    assert list_unmarked(text, planted) == []
    whole = "\n".join(list_texts(leave_marked(packet.model_dump(mode="json"))))
    assert planted not in whole
    assert planted[:20] not in whole
    task, rule = OWN[language]
    assert (packet.task or "").startswith(task)
    assert text.count(task) == 1
    assert rule in text
    assert text.count(HEADS_PASTE) == 2, "with the task and with the waiting prompt"
    assert text.count(SAYS_PASTED) == 2, "with the answer and with the rule"
