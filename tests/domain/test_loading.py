"""Modules are loaded without what they would never use here, and nothing of that stays behind."""

import gc
import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_relay.domain.documents.lean_imports import (
    HiddenModule,
    NoGarbageCollection,
    ReplacedModule,
    StubbedModule,
    disable_pydantic_plugins,
    load_lean,
)
from tests.house import tree


@pytest.fixture
def _client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library that names things of its client where it is loaded, and another that calls one."""
    (tmp_path / "some_client.py").write_text("class Answer: pass\n")
    (tmp_path / "some_library.py").write_text("import some_client\ndef ask() -> some_client.Answer: ...\n")
    (tmp_path / "other_library.py").write_text("import some_client\nEMPTY = some_client.Answer()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("some_client", "some_library", "other_library"):
        monkeypatch.delitem(sys.modules, name, raising=False)


@pytest.mark.usefixtures("_client")
def test_a_client_that_is_only_named_is_not_loaded() -> None:
    """Annotations may name what is not there; who wants the true one afterwards gets it."""
    with StubbedModule("some_client"):
        library = importlib.import_module("some_library")
    assert "some_client" not in sys.modules
    assert library.ask() is None
    assert importlib.import_module("some_client").Answer() is not None


@pytest.mark.usefixtures("_client")
def test_a_client_that_is_called_is_missed_at_once() -> None:
    """Not later, and not in silence; and a second try outside finds the true one."""
    with pytest.raises(AttributeError, match="was not loaded"), StubbedModule("some_client"):
        importlib.import_module("other_library")
    assert importlib.import_module("other_library").EMPTY is not None


@pytest.mark.usefixtures("_client")
def test_what_is_called_of_a_mute_one_is_nothing_anybody_could_use() -> None:
    """Marks on types, and tables of checks nobody makes: made while a library is loaded, and forgotten."""
    with StubbedModule("some_client", is_mute=True):
        library = importlib.import_module("other_library")
    with pytest.raises(AttributeError):
        library.EMPTY.text  # noqa: B018 - asking is the test
    assert importlib.import_module("some_client").Answer is not type(library.EMPTY)


@pytest.mark.usefixtures("_client")
def test_a_client_somebody_loaded_before_stays() -> None:
    """Two halves of a program with two different ones would be a riddle."""
    true = importlib.import_module("some_client")
    with StubbedModule("some_client"):
        assert sys.modules["some_client"] is true
    assert sys.modules["some_client"] is true


@pytest.mark.usefixtures("_client")
def test_a_likeness_is_a_module_without_a_place() -> None:
    """Whoever asks the import system of it hears nothing that is made up."""
    with StubbedModule("some_client"):
        likeness = sys.modules["some_client"]
        assert isinstance(likeness.Anything, type)
        with pytest.raises(AttributeError):
            likeness.__path__  # noqa: B018 - asking is the test


@pytest.mark.usefixtures("_client")
def test_what_is_absent_cannot_be_imported_until_the_block_ends() -> None:
    """A library that can do without it does; who wants it afterwards gets it."""
    with pytest.raises(ImportError, match="some_client"), HiddenModule("some_client"):
        importlib.import_module("some_library")
    assert importlib.import_module("some_library").ask() is None
    with HiddenModule("some_client"):
        assert importlib.import_module("some_client").Answer() is not None


@pytest.mark.usefixtures("_client")
def test_another_module_is_in_its_place_until_the_block_ends() -> None:
    """What a library takes of one is taken of the other; whoever comes later gets what was asked for."""
    with ReplacedModule("some_client", "json"):
        assert importlib.import_module("some_client") is json
    assert importlib.import_module("some_client").Answer() is not None


@pytest.mark.usefixtures("_client")
def test_a_library_is_loaded_without_what_it_can_do_without() -> None:
    """Once, and what it was loaded without can be loaded afterwards."""
    tried = list[object]()
    for _ in range(2):
        load_lean(
            "some_library",
            lambda: tried.append(importlib.import_module("some_library").ask()),
            StubbedModule("some_client"),
        )
    assert tried == [None]
    assert "some_client" not in sys.modules
    assert importlib.import_module("some_client").Answer() is not None


@pytest.mark.usefixtures("_client")
@pytest.mark.parametrize("without", [HiddenModule, StubbedModule, lambda name: ReplacedModule(name, "json")])
def test_a_library_that_needs_it_gets_what_it_was_to_be_loaded_without(
    without: Callable[[str], StubbedModule],
) -> None:
    """Another version of it does: then it is loaded whole, and only time is lost."""
    load_lean("other_library", lambda: importlib.import_module("other_library"), without("some_client"))
    assert isinstance(sys.modules["other_library"].EMPTY, sys.modules["some_client"].Answer)


def test_our_json_library_is_whole_without_the_back_ports_it_looks_for() -> None:
    """Python has all it takes from them; loading them takes as long as loading it."""
    code = (
        "import sys\n"
        "from agent_relay.domain.documents.lean_imports import HiddenModule\n"
        "with HiddenModule('typing_extensions'):\n"
        "    from agent_relay.transcripts.usage._codex_common_lines import read_plain_context\n"
        "    from agent_relay.transcripts.usage import _claude, _codex, _gemini\n"
        "from agent_relay.transcripts.usage.records import ReaderState\n"
        'line = b\'{"timestamp":"2026-11-20T10:00:00Z","type":"turn_context","payload":{"model":"m"}}\'\n'
        "memory = ReaderState()\n"
        "read_plain_context(line, memory)\n"
        "print(memory.model, memory.at, 'typing_extensions' in sys.modules, 'inspect' in sys.modules)\n"
        "import typing_extensions\n"
        "print(typing_extensions.Annotated[int, 1] is not None)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tree.CHECKOUT,
        env={},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "m 1795168800000 False False\nTrue\n"


def test_garbage_is_looked_for_again_whatever_happens() -> None:
    """A module that cannot be loaded must not leave a process that grows for ever."""
    seen: list[bool] = []

    def load() -> None:
        with NoGarbageCollection():
            seen.append(gc.isenabled())
            importlib.import_module("there_is_no_such_module")

    with pytest.raises(ModuleNotFoundError):
        load()
    assert (seen, gc.isenabled()) == ([False], True)
    gc.unfreeze()


def test_no_plugin_of_another_package_is_looked_for() -> None:
    """Looking costs a start more than all our checks, and a plugin would be shown what users wrote."""
    code = (
        "import sys; from agent_relay.domain.documents.adapter import Deliver; "
        "print(Deliver(packet_by='paste', opening='Go on.').opening, 'importlib.metadata' in sys.modules); "
        "import importlib.metadata; print(bool(list(importlib.metadata.distributions())))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tree.CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "Go on. False\nTrue\n"


def test_leaving_plugins_out_twice_is_leaving_them_out() -> None:
    """Documents and the command line both see to it, whichever comes first."""
    disable_pydantic_plugins()
    first = sys.modules["pydantic.plugin._loader"]
    disable_pydantic_plugins()
    assert sys.modules["pydantic.plugin._loader"] is first
    assert list(importlib.import_module("pydantic.plugin._loader").get_plugins()) == []


def test_who_loads_within_a_calm_block_does_not_end_it() -> None:
    """A command that is calm to its end loads modules meanwhile."""
    with NoGarbageCollection():
        with NoGarbageCollection():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    gc.unfreeze()
