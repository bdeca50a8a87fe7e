"""Mark tests that start programs as slow: `make check` leaves them to `make test`, and nobody must remember.

What a test and its fixtures use decides: their own functions and classes, those of the tests' folders that
these name, and so on, down to what starts a daemon, an agent, a terminal or any other program.
"""

import functools
import inspect
import os
from collections.abc import Iterator
from types import CodeType, FunctionType, ModuleType

import pytest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
STARTING_MODULES = frozenset({"subprocess", "pexpect", "multiprocessing", "pty"})
STARTING_FUNCTIONS = frozenset(
    {
        "agent_relay.client.autostart.connect_or_start",
        "agent_relay.client.autostart.start_daemon",
        "agent_relay.engine.proxy_keeper.ProxyKeeper",
        "agent_relay.faces.cli.session.relay_prompt.run_prompt_line",
        "agent_relay.system.headless.run_headless",
        "agent_relay.system.limited_process.LimitedProcess",
        "agent_relay.system.spawn.spawn_program",
        "agent_relay.terminal.holder.child.spawn",
        "agent_relay.terminal.holder_client.start_holder",
        "posix.fork",
        "posix.forkpty",
        "posix.posix_spawn",
    }
)

_start, _start_none = set[int](), set[int]()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the test."""
    if isinstance(item, pytest.Function) and any(starts_programs(one) for one in _list_used(item)):
        item.add_marker(pytest.mark.slow)


def starts_programs(used: object) -> bool:
    """Return whether a function or class of a test leads to one that starts programs."""
    seen: dict[int, object] = {}
    waiting = [_unwrap(used)]
    while waiting:
        found = waiting.pop()
        if id(found) in seen or id(found) in _start_none:
            continue
        seen[id(found)] = found
        if id(found) in _start or _is_starting(found):
            _start.add(id(_unwrap(used)))
            return True
        waiting += [_unwrap(part) for part in _list_parts(found)]
    _start_none.update(seen)
    return False


def _list_used(item: pytest.Function) -> Iterator[object]:
    """Yield the test's function, and those of its fixtures, each from the nearest file that has one."""
    yield item.function
    files = [module for _, module in item.config.pluginmanager.list_name_plugin() if _is_around(module, item)]
    files.sort(key=lambda module: -len(str(module.__file__)))
    for name in item.fixturenames:
        yield next((vars(file)[name] for file in (item.module, *files) if name in vars(file)), None)


def _is_around(module: object, item: pytest.Item) -> bool:
    if not isinstance(module, ModuleType) or not module.__file__:
        return False
    folder, name = os.path.split(module.__file__)
    return name == "conftest.py" and str(item.path).startswith(folder + os.sep)


def _unwrap(found: object) -> object:
    """Return what a decorator, a fixture, a property or a partial was made of."""
    if isinstance(found, property):
        found = found.fget
    if isinstance(found, functools.partial):
        found = found.func
    return inspect.unwrap(found) if callable(found) else found


def _is_starting(found: object) -> bool:
    if isinstance(found, ModuleType):
        return found.__name__ in STARTING_MODULES
    module = str(getattr(found, "__module__", ""))
    name = f"{module}.{getattr(found, '__qualname__', '')}"
    return module.partition(".")[0] in STARTING_MODULES or name in STARTING_FUNCTIONS


def _list_parts(found: object) -> Iterator[object]:
    """Yield what a function or class of the tests names; nothing of a library's or the product's."""
    if isinstance(found, type) and found.__module__.startswith("tests."):
        yield from found.__bases__
        yield from vars(found).values()
    elif isinstance(found, FunctionType) and found.__code__.co_filename.startswith(TESTS):
        yield from found.__defaults__ or ()
        yield from (found.__kwdefaults__ or {}).values()
        names = set(_list_names(found.__code__))
        for name in names & found.__globals__.keys():
            named = found.__globals__[name]
            is_opened = named is os or (isinstance(named, ModuleType) and named.__name__.startswith("tests."))
            yield from (vars(named)[part] for part in names & vars(named).keys()) if is_opened else (named,)


def _list_names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for part in code.co_consts:
        if isinstance(part, CodeType):
            yield from _list_names(part)
