"""Load an adapter's rules from disk, and refuse patterns that are slow."""

from collections.abc import Iterator
from functools import lru_cache

from pydantic import BaseModel

from agent_relay.agents.adapters import LoadedAdapter
from agent_relay.domain.documents.rules import Rules
from agent_relay.system.config.pattern_cost import refuse_slow
from agent_relay.system.config.toml_document import parse_document, parse_toml, read_text

_PATTERNS = frozenset(
    {"pattern", "starts", "stops", "above", "unless_below", "unless", "row", "anchor", "hint", "matches"}
)
_PAGE = "See docs/adapters.md."


def load_rules(loaded: LoadedAdapter) -> Rules:
    """Return the rules beside an adapter, fitted to its version; none if it has no such file.

    Raises ConfigurationError. A pattern that takes more than linear time is refused: it would block the
    daemon on a text that it is slow for. Patterns of built-in adapters were checked when they were written.
    Takes up to a second the first time; rules that have not changed since cost a read of the file.
    """
    try:
        text = read_text(loaded.rules_path)
    except FileNotFoundError:
        return Rules()
    return _parse(text, loaded.rules_path, is_trusted=loaded.origin == "built-in").fit(loaded.version)


@lru_cache(maxsize=32)
def _parse(text: str, path: str, *, is_trusted: bool) -> Rules:
    """Return the rules in `text`, read from `path`; measure the patterns unless `is_trusted`."""
    rules = parse_document(parse_toml(text, path), Rules, path)
    if not is_trusted:
        for place, pattern in iterate_patterns(rules):
            refuse_slow(pattern, f"{path}: {place}", hint=_PAGE, is_whole=is_whole(place))
    return rules


def iterate_patterns(rules: Rules) -> Iterator[tuple[str, str]]:
    """Yield every pattern with its place, which names rules by ids: `limits.weekly.pattern`."""
    return _iterate(rules, "")


def is_whole(place: str) -> bool:
    """Return whether the pattern at `place` must match the whole of a text; others are searched for."""
    return place.endswith(".hint")


def _iterate(value: object, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, BaseModel):
        for name in type(value).model_fields:
            inner = f"{place}.{name}" if place else name
            found: object = getattr(value, name)
            if name == "matches" and isinstance(found, dict):
                yield from ((f"{inner}.{path}", pattern) for path, pattern in found.items())
            elif name in _PATTERNS and isinstance(found, str):
                if found:
                    yield inner, found
            else:
                yield from _iterate(found, inner)
    elif isinstance(value, tuple):
        for number, one in enumerate(value):
            name = getattr(one, "id", "") or getattr(one, "name", "") or str(number)
            yield from _iterate(one, f"{place}.{name}")
