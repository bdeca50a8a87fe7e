"""Keys as a terminal sends them, where much text at once is one paste and not that many keys."""

import select
from collections.abc import Iterable, Iterator

from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

_MUCH = 64
"""Nobody types that many characters between two looks at the terminal."""
_MOST = 4 << 20
_PAUSE_S = 0.01
"""How long a terminal may take for the next piece of what it is sending."""
_BLANKS = {Keys.ControlJ: "\n", Keys.ControlI: "\t"}


class PastingInput(Vt100Input):
    """A terminal that may not bracket its pastes: old ones, and programs that drive this one, do not."""

    def read_keys(self) -> list[KeyPress]:
        """The keys that have come; of a paste all of it, so that it is inserted and drawn once."""
        keys = super().read_keys()
        newest = len(keys)
        while newest >= _MUCH and len(keys) < _MOST and self._has_more():
            more = super().read_keys()
            newest = len(more)
            keys += more
        return list(gather_text(keys))

    def _has_more(self) -> bool:
        return not self.closed and bool(select.select([self.fileno()], [], [], _PAUSE_S)[0])


def gather_text(keys: Iterable[KeyPress]) -> Iterator[KeyPress]:
    """The keys, long runs of characters as one paste each; Enter and every other key stay what they are."""
    run: list[KeyPress] = []
    for key in keys:
        if _read(key):
            run.append(key)
            continue
        yield from _join(run)
        run = []
        yield key
    yield from _join(run)


def _join(run: list[KeyPress]) -> list[KeyPress]:
    if len(run) < _MUCH:
        return run
    return [KeyPress(Keys.BracketedPaste, "".join(map(_read, run)))]


def _read(key: KeyPress) -> str:
    """The character it stands for in a paste; empty for none."""
    return _BLANKS.get(key.key, "") if isinstance(key.key, Keys) else key.key
