"""Import large libraries quickly: garbage collection off, dependencies that are never used stubbed.

Hot commands load this, so it imports nothing heavy.
"""

import gc
import importlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType, TracebackType
else:
    ModuleType = type(sys)


class NoGarbageCollection:
    """While its block runs nobody looks for garbage: what modules are made of stays, for all the run."""

    def __init__(self) -> None:
        self._is_outer = gc.isenabled()

    def __enter__(self) -> None:
        gc.disable()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: "TracebackType | None",
    ) -> None:
        gc.freeze()
        if self._is_outer:
            gc.enable()


class StubbedModule:
    """While its block runs, whoever imports the module `name` gets one that only looks like it.

    For clients of the network that a library brings along: as dear to load as the rest, and never used here.
    What is taken from it can be named, and not called: that raises AttributeError. With `is_mute` it can be
    called, too, for libraries that make marks and tables with it while they are loaded; only what comes of
    that cannot be used. Where the true one is loaded already it stays; whoever imports it later gets it.
    """

    def __init__(self, name: str, *, is_mute: bool = False) -> None:
        self._name = name
        self._kind = _Mute if is_mute else _NotHere
        self._is_out = False

    def __enter__(self) -> None:
        self._is_out = self._name not in sys.modules
        if self._is_out:
            sys.modules[self._name] = self._make()  # type: ignore[assignment]  # none is how Python marks it

    def _make(self) -> "ModuleType | None":
        return _Likeness(self._name, self._kind)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: "TracebackType | None",
    ) -> None:
        if self._is_out:
            del sys.modules[self._name]


class HiddenModule(StubbedModule):
    """While its block runs nobody can import the module `name`, as where it is not installed.

    For what a library takes from it where it can, and from Python where it cannot. Where it is loaded already
    it stays.
    """

    def _make(self) -> "ModuleType | None":
        return None


class ReplacedModule(StubbedModule):
    """While its block runs, whoever imports the module `name` gets the `other`, which has the same."""

    def __init__(self, name: str, other: str) -> None:
        super().__init__(name)
        self._other = other

    def _make(self) -> "ModuleType | None":
        return importlib.import_module(self._other)


def load_lean(library: str, try_out: "Callable[[], object]", *without: StubbedModule) -> None:
    """`library` is there afterwards: loaded by `try_out` and `without` these, or whole where it needs one."""
    if library in sys.modules:
        return
    try:
        for one in without:
            one.__enter__()
        try:
            try_out()
        finally:
            for one in reversed(without):
                one.__exit__(None, None, None)
    except (AttributeError, TypeError, ImportError):
        # A version that takes more of them than another.
        for name in [one for one in sys.modules if one.partition(".")[0] == library]:
            del sys.modules[name]
        importlib.import_module(library)


def disable_pydantic_plugins() -> None:
    """From now on pydantic looks for no plugins of other packages, which it does before its first check.

    To look, it reads what is installed here, which is dearer than all our checks at a start; and a plugin
    would be shown what users wrote. Its name for the module that looks is its own: where a version of it has
    another, plugins are looked for.
    """
    sys.modules.setdefault("pydantic.plugin._loader", _NoPlugins("pydantic.plugin._loader"))


class _NoPlugins(ModuleType):
    def get_plugins(self) -> tuple[()]:
        return ()


class _Likeness(ModuleType):
    def __init__(self, name: str, kind: type) -> None:
        super().__init__(name)
        self._kind = kind

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._kind


class _NotHere:
    def __init__(self, *_: object, **__: object) -> None:
        raise AttributeError("this was not loaded")


class _Mute:
    def __init__(self, *_: object, **__: object) -> None:
        pass
