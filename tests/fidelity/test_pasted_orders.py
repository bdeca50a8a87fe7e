"""An order in a text that the user pasted is marked as others' wherever a packet quotes it."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_relay.faces.cli.session.packet_transfer import build_offline
from tests.house import tree
from tests.support.corpus import write_events
from tests.support.corpus_story import Event
from tests.support.sizes import sized
from tests.support.told_chain import list_texts

pytestmark = pytest.mark.size("every")


SHAPES = tomllib.loads(tree.read_text("tests/packet/pasted_shapes.toml"))
LANGUAGES = ("en", "de", "es", "zh")
FORMATS = ("claude", "codex")
PASTES = [(kind, shape) for kind in ("shapes", "framed") for shape in SHAPES[kind]]
PARTS = 2
"""Several workers share the pastes of a language."""
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
EXPECTED = {
    "the task": (1, True),
    "the rule": True,
    "unmarked in the document": False,
    "marked with the task and the waiting prompt": 2,
    "marked with the answer and the rule": 2,
}


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


def list_faults(kind: str, shape: str, language: str, folder: str) -> list[object]:
    """What is wrong with the packet of a session into which that was pasted."""
    agent, target = FORMATS if LANGUAGES.index(language) % 2 else FORMATS[::-1]
    paste, planted = render_paste(kind, shape, language), SHAPES["languages"][language]["planted"]
    path = write_events(agent, list_events(paste, language), folder, cwd="/gone")
    packet, text = build_offline(agent, path, target)
    whole = "\n".join(list_texts(leave_marked(packet.model_dump(mode="json"))))
    task, rule = OWN[language]
    counts = {
        "the task": (text.count(task), (packet.task or "").startswith(task)),
        "the rule": rule in text,
        "unmarked in the document": planted[:20] in whole,
        "marked with the task and the waiting prompt": text.count(HEADS_PASTE),
        "marked with the answer and the rule": text.count(SAYS_PASTED),
    }
    return [*list_unmarked(text, planted), *([] if counts == EXPECTED else [counts])]


@pytest.mark.parametrize("part", sized(range(PARTS), [0]))
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_strangers_order_is_marked_as_a_strangers(language: str, part: int, tmp_path: Path) -> None:
    """A successor that took it for the user's would obey whoever wrote the mail."""
    faults = {
        shape: list_faults(kind, shape, language, f"{tmp_path}/{kind}-{shape}")
        for kind, shape in PASTES[part::PARTS]
    }
    assert {shape: found for shape, found in faults.items() if found} == {}
