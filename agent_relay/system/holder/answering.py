"""Which of several terminals answers the program's questions, so that it reads each answer once."""

import time

from agent_relay.logic.answers import count_cursor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from agent_relay.logic.keystrokes import KeyScanner

    class Answerer(Protocol):
        """A terminal: its input's scanner, and whether it is given the program's output as it comes."""

        @property
        def keys(self) -> KeyScanner:
            """What tells its keys from its answers."""

        @property
        def keeps_up(self) -> bool:
            """Whether it is shown the question."""

        def owe(self, answers: bytes) -> None:
            """Its own answers follow once it was shown what waits for it."""


# An answer that takes longer to come is not told from one to a later question.
_ANSWER_S = 2.0


class Answering:
    """Who answers: the terminal that was active when the program asked, if it kept up; else the active one.

    That a question was asked is known from the emulator's own answer to it, at no cost for other output.
    """

    __slots__ = ("_asked", "_asked_at", "_who")

    def __init__(self) -> None:
        self._asked = False
        self._asked_at = 0.0
        self._who: Answerer | None = None

    def ask(self, active: "Answerer | None", attached: "Sequence[Answerer]", answers: bytes) -> bool:
        """The program asked what the emulator answers so; whether a terminal will answer instead."""
        who = active if active is not None and active.keeps_up else None
        if len(attached) > 1:
            self._who, self._asked, self._asked_at = who, True, time.monotonic()
            count = count_cursor(answers)
            for terminal in attached:
                if terminal.keeps_up:
                    terminal.keys.cursor_due += count
        if who is not None:
            who.owe(answers)
        return who is not None

    def find(
        self, active: "Answerer | None", attached: "Sequence[Answerer]", now: float
    ) -> "Answerer | None":
        """The terminal whose answers, coming `now`, reach the program."""
        if self._asked and now - self._asked_at > _ANSWER_S:
            self._who, self._asked = None, False
            for terminal in attached:
                terminal.keys.cursor_due = 0
        return self._who if self._who in attached else active
