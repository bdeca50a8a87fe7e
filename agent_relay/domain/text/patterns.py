"""Regular expressions that are compiled on first use: few processes need most of ours."""

import re
from typing import AnyStr, cast

_ASKED = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn")


def compile_late(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a stand-in for what `re.compile` returns, compiled when it is first used.

    For patterns in our own code only, where a test compiles them all: an invalid pattern from elsewhere
    must be refused when it is read, not when it is first needed. Once compiled it is as fast as any other.
    """
    late = _Late(pattern, flags)
    _WAITING.add(late)
    return cast("re.Pattern[AnyStr]", late)


def compile_all() -> None:
    """Compile every pattern of the modules loaded: for a process whose children will use them."""
    while _WAITING:
        next(iter(_WAITING)).prepare()


def read_pattern(value: object) -> re.Pattern[str] | re.Pattern[bytes] | None:
    """Return the pattern `value` is, compiled; `None` for anything else."""
    if isinstance(value, _Late):
        return value.compiled
    return value if isinstance(value, re.Pattern) else None


class _Late:
    """A pattern with empty slots until its first use; then they hold the compiled pattern's methods."""

    __slots__ = ("_flags", "_pattern", *_ASKED)

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self._pattern = pattern
        self._flags = flags

    @property
    def compiled(self) -> re.Pattern[str] | re.Pattern[bytes]:
        """The compiled pattern."""
        return re.compile(self._pattern, self._flags)

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):  # no pattern has such a thing, and who copies or shows us asks for some
            raise AttributeError(name)
        return getattr(self.prepare(), name)

    def prepare(self) -> re.Pattern[str] | re.Pattern[bytes]:
        """Compile the pattern, copy its methods into the slots, and return it."""
        _WAITING.discard(self)
        compiled = self.compiled
        for asked in _ASKED:
            setattr(self, asked, getattr(compiled, asked))
        return compiled


_WAITING: set[_Late] = set()
