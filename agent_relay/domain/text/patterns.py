"""Regular expressions that are compiled on first use: most of ours are for moments few processes see."""

import re
from typing import AnyStr, cast

_ASKED = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn")


def compile_late(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What `re.compile` gives, and answers the same; it is compiled when something is first asked of it.

    For patterns that stand in our own code only, where a test compiles them all: what somebody else wrote
    must be refused when it is read, not when it is first needed. Once compiled it is as fast as any other.
    """
    late = _Late(pattern, flags)
    _WAITING.add(late)
    return cast("re.Pattern[AnyStr]", late)


def compile_all() -> None:
    """Every pattern of the modules loaded is compiled: for a process whose children will ask them."""
    while _WAITING:
        next(iter(_WAITING)).prepare()


def read_pattern(value: object) -> re.Pattern[str] | re.Pattern[bytes] | None:
    """The pattern `value` is, compiled; `None` for anything else."""
    if isinstance(value, _Late):
        return value.compiled
    return value if isinstance(value, re.Pattern) else None


class _Late:
    """Empty slots until something is asked; then the methods of the compiled pattern stand in them."""

    __slots__ = ("_flags", "_pattern", *_ASKED)

    def __init__(self, pattern: str | bytes, flags: int) -> None:
        self._pattern = pattern
        self._flags = flags

    @property
    def compiled(self) -> re.Pattern[str] | re.Pattern[bytes]:
        """The pattern itself."""
        return re.compile(self._pattern, self._flags)

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):  # no pattern has such a thing, and who copies or shows us asks for some
            raise AttributeError(name)
        return getattr(self.prepare(), name)

    def prepare(self) -> re.Pattern[str] | re.Pattern[bytes]:
        """The pattern itself; from now on its methods are ours."""
        _WAITING.discard(self)
        compiled = self.compiled
        for asked in _ASKED:
            setattr(self, asked, getattr(compiled, asked))
        return compiled


_WAITING: set[_Late] = set()
