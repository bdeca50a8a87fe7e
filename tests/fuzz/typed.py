"""What a terminal types, through the scanner of the holder and the prompt of the client."""

import random
import re

from agent_relay.client.attach.prompt import LinePrompt
from agent_relay.terminal.keystrokes import HeldKeys, KeyScanner
from agent_relay.terminal.typed_line import MOST_BYTES, TypedLine
from tests.fuzz.inputs import Step, cut, make_stream

_RELAY_KEY = 0x1D
_KEY = re.compile(rb"\x1d|\x1b\[93[:;0-9]*u|\x1b\[27;5;93~")
# Input a scanner keeps back is what may become a key, a mark or an answer: never more than a few numbers.
_MOST_HELD = 200


class _Paper:
    """A client's terminal: takes everything."""

    def write(self, _data: bytes) -> bool:
        return True

    def cells(self) -> tuple[int, int]:
        return 24, 80


class Typed:
    """Nothing raises, nothing that was typed is lost, and nothing is counted below zero."""

    name = "typed"

    def __init__(self) -> None:
        self._is_bare = False

    def make(self, rng: random.Random) -> list[Step]:
        """A relay key or none, then reads, and pauses in which what was held is released."""
        steps: list[Step] = [["key", rng.choice((_RELAY_KEY, _RELAY_KEY, 0, 3))]]
        for part in cut(rng, make_stream(rng)):
            steps.append([rng.choice(("read", "read", "read", "sift", "bare")), part])
            if rng.random() < 0.3:
                steps.append(["release"])
            if rng.random() < 0.1:
                steps.append(["due", rng.randrange(3)])
        return steps

    def run(self, steps: list[Step]) -> None:
        """The input, scanned."""
        keys = KeyScanner(int(str(steps[0][1])), TypedLine())
        self._is_bare = any(step[0] == "bare" for step in steps)
        held = HeldKeys()
        waiting = given = 0
        for step in steps[1:]:
            if step[0] == "release":
                given += len(keys.release())
            elif step[0] == "due":
                keys.cursor_due = int(str(step[1]))
            else:
                data = str(step[1]).encode("latin-1")
                keys.is_plain(data)
                keys.bare = keys.bare or step[0] == "bare"
                waiting += len(data)
                passed, rest = keys.feed(data, sift=step[0] == "sift")
                held.add(passed)
                assert held.size <= MOST_BYTES + _MOST_HELD, "more is held than may be"
                given += len(passed) + len(keys.answers)
                if rest is not None:
                    waiting -= len(rest)
                    self._prompt(rest, keys.relay_key)
                    waiting, given = self._check(waiting, given, keys, is_key=True)
            waiting, given = self._check(waiting, given, keys, is_key=False)

    def _check(self, waiting: int, given: int, keys: KeyScanner, *, is_key: bool) -> tuple[int, int]:
        assert keys.line.count >= 0, "less than nothing is typed"
        assert len(keys.held) <= _MOST_HELD, "input is kept back"
        if is_key:
            assert waiting - given >= 1, "the relay key took nothing"
            return 0, 0
        missing = waiting - given - len(keys.held)
        # Marks of pastes are taken away for programs that want none.
        assert not missing or (self._is_bare and missing % len(b"\x1b[200~") == 0), "what was typed is lost"
        assert missing >= 0, "what was not typed is given"
        return len(keys.held), 0

    def _prompt(self, rest: bytes, relay_key: int) -> None:
        """What came behind the relay key, at the prompt; it ends when nothing more comes."""

        def read(*, wait: bool, limit_s: float = 0.0) -> bytes | None:
            del wait, limit_s

        prompt = LinePrompt(_Paper(), read, relay_key)  # type: ignore[arg-type]
        prompt.ask(rest)
        assert len(prompt.left) <= len(rest), "more is left than was typed"

    def close(self) -> None:
        """Nothing is open."""
