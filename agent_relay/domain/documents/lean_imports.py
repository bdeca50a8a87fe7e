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
    """While its block runs, garbage collection is off; what was loaded is exempt for the whole run."""

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
    """While its block runs, importing the module `name` gives a stub.

    For network clients that a library imports: as slow to load as the rest, and never used here. Names can be
    taken from the stub, but not called: that raises AttributeError. With `is_mute` they can be called, too,
    for libraries that build marks and tables with them while they are loaded; only the results cannot be
    used. If the real module is already loaded, it stays; later imports get the real one.
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
    """While its block runs, the module `name` cannot be imported, as if it were not installed.

    For modules that a library uses if it can, with a fallback in Python. If it is already loaded, it stays.
    """

    def _make(self) -> "ModuleType | None":
        return None


class ReplacedModule(StubbedModule):
    """While its block runs, importing the module `name` gives `other`, which has the same names."""

    def __init__(self, name: str, other: str) -> None:
        super().__init__(name)
        self._other = other

    def _make(self) -> "ModuleType | None":
        return importlib.import_module(self._other)


def load_lean(library: str, try_out: "Callable[[], object]", *without: StubbedModule) -> None:
    """Load `library` by `try_out` with `without` stubbed; load it whole if a version needs one of them."""
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
    """Keep pydantic from searching for plugins of other packages before its first check.

    To search, it reads what is installed here, which is slower than all our checks at a start; and a plugin
    would see what users wrote. The name of pydantic's module for this is private: if a version of it uses
    another name, plugins are searched for.
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
