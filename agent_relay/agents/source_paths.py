"""Expand an adapter's path patterns with one leg's values, into the paths where it leaves its evidence."""

import functools
import os
import re
from collections.abc import Iterator, Mapping
from datetime import datetime

import msgspec

from agent_relay.domain.errors import ConfigurationError

KNOWN_VALUES = frozenset({"leg_folder", "native_id", "home", "pid", "cwd", "cwd_slug", "port", "password"})

_STAR = "\0"  # stands for `*` while values, which may hold real stars, are put in: no path holds a NUL
_FORM = re.compile(
    r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::(?:-(?P<default>.*)|(?P<length>[0-9]+)))?", re.DOTALL
)


class LegPlace(msgspec.Struct, frozen=True):
    """One leg as its sources need it: `values` by placeholder name, `environ` as the agent sees it."""

    leg_id: str
    started_at: datetime
    values: Mapping[str, str]
    environ: Mapping[str, str] = msgspec.field(default_factory=dict)


class PathPattern(msgspec.Struct, frozen=True):
    """An absolute path, or a glob in which only the adapter's own stars are wild."""

    text: str

    @property
    def literal(self) -> str | None:
        """The path, if it has no wildcard; else `None`."""
        return None if _STAR in self.text else self.text

    @property
    def folder(self) -> str:
        """The deepest folder without a wildcard."""
        return os.path.dirname(self.text.split(_STAR, 1)[0])

    def find(self) -> Iterator[str]:
        """Return the paths that exist and match."""
        if self.literal is not None:
            return iter([self.literal] if os.path.exists(self.literal) else [])
        import glob

        return glob.iglob(glob.escape(self.text).replace(_STAR, "*"), recursive=True, include_hidden=True)

    def matches(self, path: str) -> bool:
        """Return whether `path` is one `find` would return, if it existed."""
        return path == self.text or _compile(self.text).fullmatch(path) is not None

    def is_called_so(self, path: str) -> bool:
        """Return whether the last part of `path` could be that of a match, in whatever folder."""
        return _compile(os.path.basename(self.text)).fullmatch(os.path.basename(path)) is not None

    def may_lie_below(self, path: str) -> bool:
        """Return whether `path` could be a folder on the way to a match."""
        known, star, wild = self.text.partition(_STAR)
        if known.startswith(path.rstrip("/") + "/"):
            return True
        is_above = _STAR * 2 in self.text or path.count("/") < self.text.count("/")
        return bool(star) and "/" in wild and is_above and path.startswith(known)


_WILD = re.compile(f"({_STAR}{_STAR}/|{_STAR}{_STAR}|{_STAR})")


@functools.lru_cache(maxsize=1024)
def _compile(text: str) -> re.Pattern[str]:
    words = {_STAR * 2 + "/": "(?:[^/]+/)*", _STAR * 2: ".*", _STAR: "[^/]*"}
    parts = _WILD.split(text)
    return re.compile("".join(words.get(part) or re.escape(part) for part in parts), re.DOTALL)


def expand_path(template: str, place: LegPlace) -> PathPattern | None:
    """Return the pattern `template` gives for this leg; `None` while a value it needs is unknown.

    An unknown native id matches any. Raises ConfigurationError for a name that is no value of a leg.
    """
    text = fill_text(template.replace("*", _STAR), place.values, place.environ, unknown_id=_STAR)
    if text is None:
        return None
    known, star, wild = os.path.join(place.values.get("cwd", "/"), text).partition(_STAR)
    folder, name = os.path.split(known)
    folder = "/" + os.path.normpath(folder).strip("/")
    return PathPattern(os.path.join(folder, name) + star + wild)


def expand_text(template: str, place: LegPlace) -> str | None:
    """Return `template` filled for this leg, as `fill_text` does."""
    return fill_text(template, place.values, place.environ)


def fill_text(
    template: str, values: Mapping[str, str], environ: Mapping[str, str], *, unknown_id: str | None = None
) -> str | None:
    """Return `template` with its placeholders filled; `None` while one has no value.

    Raises ConfigurationError for a name that is no value of a leg.
    """
    done: list[str] = []
    rest = template
    while "{" in rest:
        before, _, rest = rest.partition("{")
        inner, rest = _split_at_closing_brace(rest)
        value = _fill(inner, values, environ, unknown_id)
        if value is None:
            return None
        done += [before, value]
    return "".join([*done, rest])


def _split_at_closing_brace(text: str) -> tuple[str, str]:
    depth = 1
    for index, character in enumerate(text):
        depth += (character == "{") - (character == "}")
        if not depth:
            return text[:index], text[index + 1 :]
    raise ConfigurationError("a source's path has a brace that is never closed")


def _fill(
    inner: str, values: Mapping[str, str], environ: Mapping[str, str], unknown_id: str | None
) -> str | None:
    form = _FORM.fullmatch(inner)
    if form is None:
        raise ConfigurationError(f"a source's path holds {{{inner}}}, which is not a placeholder")
    name, default, length = form["name"], form["default"], form["length"]
    if name.isupper():
        value = environ.get(name, "")
        if value or default is None:
            return value or None
        return fill_text(default, values, environ, unknown_id=unknown_id)
    if name not in KNOWN_VALUES:
        raise ConfigurationError(f"a source's path names an unknown value {{{name}}}")
    value = _slug(values.get("cwd", "")) if name == "cwd_slug" else values.get(name, "")
    if _STAR in value:
        return None  # it would match anything
    if value:
        return value[: int(length)] if length else value
    return unknown_id if name == "native_id" else None


_NOT_PLAIN = re.compile(r"[^A-Za-z0-9]")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")


def _slug(path: str) -> str:
    """Return the path with a dash for everything but ASCII letters and digits; astral characters give two.

    That is how a program that counts text in UTF-16 units names a folder after another.
    """
    return _NOT_PLAIN.sub("-", _ASTRAL.sub("--", path))
