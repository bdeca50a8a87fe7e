"""Messages and help are plain: they say what is, and what to do next, in words that anybody guesses."""

import os
import re

from tests.house import tree
from tests.house.test_hints import list_texts

PLACES = ("agent_relay/faces", "agent_relay/domain/text")
FILES = ("agent_relay/session/views/messages.py", "agent_relay/session/views/event_lines.py")
PAGES = ("docs/cli.md", "docs/shell.md")
"""What `--help` and `/help` print; docstrings of commands are among it."""
RIDDLES = re.compile(
    r"\b(?:nobody|somebody|whoever|is told|are told|was told|wish(?:es|ed)?|nothing runs|nothing is running"
    r"|(?:is|are) (?:said|shown) once|mistake of ours|came to a halt|says how it goes|has the next message"
    r"|has no end|takes no words|does not know|(?<!there )is no (?:text|time|version|agent)|answers nobody"
    r"|what stands|it stands|is judged|not judged|all the same is)\b",
    re.IGNORECASE,
)
QUOTED = {"Now fix the greeting of nobody."}
"""Prompts of the demo, which are no message of ours."""


def list_messages() -> list[tuple[str, str]]:
    """Every text that is shown to people, with the file it stands in."""
    names = [name for place in PLACES for name in tree.python_files(place)]
    found = [(name, text) for name in (*names, *FILES) for text in list_texts(name)]
    return [*found, *((name, line) for name in PAGES for line in tree.read_text(name).splitlines())]


def test_no_message_is_a_riddle() -> None:
    """A person who has just been stopped by something should not have to read it twice."""
    messages = list_messages()
    assert len(messages) > 1000
    assert [
        f"{os.path.basename(name)}: {text}"
        for name, text in messages
        if RIDDLES.search(text) and text not in QUOTED
    ] == []


def test_the_riddles_are_found() -> None:
    """A pattern that matches nothing would hold nothing."""
    for text in ("Nothing runs here.", "This is said once.", "what was saved is no text", "Nobody rests."):
        assert RIDDLES.search(text)
    assert not RIDDLES.search("No agent is resting.")
