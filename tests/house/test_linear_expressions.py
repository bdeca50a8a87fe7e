"""No expression of ours takes longer than the text it meets is long: texts come from everybody."""

import ast
import functools
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator

import msgspec
import pytest

import agent_relay
from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import is_whole, iterate_patterns, load_adapter, load_rules
from agent_relay.domain.text import plain
from agent_relay.domain.text.plain import read_pattern
from agent_relay.system.pattern_cost import check_pattern, find_slow_probe
from tests.house.tree import adapter_names, parse, python_files, walk
from tests.support.sizes import sized

_SCANS = {"finditer", "findall", "sub", "subn", "split"}
_GROUPS = 8
# What keeps an expression from meeting what it would be slow for, each with its reason.
_WORD = "it is asked of one whole word of a command"
_SHORT = {
    **{f"agent_relay.packet.extract.outcomes._TARGETS[{number}][0]": _WORD for number in range(3)},
    "agent_relay.sources.record_framing._TOKEN": "the walk stops at the first quote that has no end",
}


@functools.cache
def list_expressions() -> dict[str, tuple[re.Pattern[str] | re.Pattern[bytes], frozenset[str]]]:
    """Every expression that is made when a module is loaded, by its place, with what is asked of it."""
    found: dict[str, tuple[re.Pattern[str] | re.Pattern[bytes], int]] = {}
    seen: set[int] = set()
    uses: dict[int, set[str]] = {}
    modules = [module.name for module in pkgutil.walk_packages(agent_relay.__path__, "agent_relay.")]
    # What waits to be compiled is found where it stands, not where it waits.
    for module in sorted(modules, key=lambda name: name == plain.__name__):
        if module.endswith("__main__"):
            continue
        loaded = importlib.import_module(module)
        asked = _list_asked(loaded.__file__ or "")
        for name, value in list(vars(loaded).items()):
            uses.setdefault(id(value), set()).update(asked.get(name, ()))
            for place, pattern in _gather(value, name, seen):
                found[f"{module}.{place}"] = (pattern, id(value) if place == name else 0)
    return {place: (pattern, frozenset(uses.get(own, ()))) for place, (pattern, own) in found.items()}


def _list_asked(path: str) -> dict[str, frozenset[str]]:
    """The methods a module asks of its names."""
    asked: dict[str, set[str]] = {}
    for node in walk(parse(path)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            asked.setdefault(node.value.id, set()).add(node.attr)
    return {name: frozenset(attributes) for name, attributes in asked.items()}


def _gather(
    value: object, place: str, seen: set[int]
) -> Iterator[tuple[str, re.Pattern[str] | re.Pattern[bytes]]]:
    if id(value) in seen:
        return
    seen.add(id(value))
    pattern = read_pattern(value)
    if pattern is not None:
        yield place, pattern
    elif isinstance(value, (tuple, list, set, frozenset)):
        for number, one in enumerate(value):
            yield from _gather(one, f"{place}[{number}]", seen)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _gather(one, f"{place}[{key!r}]", seen)
    elif isinstance(value, msgspec.Struct):
        for name, one in msgspec.structs.asdict(value).items():
            yield from _gather(one, f"{place}.{name}", seen)


def _build_ask(
    pattern: re.Pattern[str] | re.Pattern[bytes], asked: frozenset[str]
) -> Callable[[str], object]:
    """How its module asks it: at one place, for the first match, or for all."""

    def ask(text: str) -> object:
        given = text.encode() if isinstance(pattern.pattern, bytes) else text
        for method in ("match", "fullmatch", "search"):
            if method in asked and not asked & _SCANS:
                getattr(pattern, method)(given)
        if asked & _SCANS or not asked & {"match", "fullmatch", "search"}:
            for _ in pattern.finditer(given):  # type: ignore[arg-type]
                pass
        return None

    return ask


@pytest.mark.size("every")
@pytest.mark.parametrize("group", range(_GROUPS))
def test_every_expression_takes_as_long_as_its_text(group: int) -> None:
    """One that takes the square froze the daemon, and the next one, over a line of backslashes."""
    slow = {}
    for place, (pattern, asked) in sorted(list_expressions().items())[group::_GROUPS]:
        source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
        probe = "" if place in _SHORT else find_slow_probe(source, _build_ask(pattern, asked))
        if probe:
            slow[place] = probe
    assert slow == {}


def test_every_expression_is_found() -> None:
    """The test above is worth what it looks at: expressions stand in their modules, none inside functions."""
    assert len(list_expressions()) > 500
    strays = []
    for name in python_files("agent_relay"):
        for node in walk(parse(name)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            is_own = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
            if is_own and node.func.attr in {*_SCANS, "search", "match", "fullmatch"}:
                strays.append(f"{name}:{node.lineno}")
    assert strays == []


@pytest.mark.size("every")
@pytest.mark.parametrize("agent", sized(adapter_names(), ["demo"]))
def test_every_rule_of_our_adapters_takes_as_long_as_its_text(agent: str) -> None:
    """They are not looked at when they are loaded, as a user's are: that would cost every start."""
    rules = load_rules(load_adapter(f"{find_builtin_folder()}/{agent}", origin="built-in"))
    slow = {}
    for place, pattern in iterate_patterns(rules):
        probe = check_pattern(pattern, is_whole=is_whole(place))
        if probe:
            slow[place] = probe
    assert slow == {}
