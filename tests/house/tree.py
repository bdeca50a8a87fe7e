"""The files of the checkout as the house tests see them."""

import ast
import functools
import os
import tomllib

from agent_relay.system.git.run import ask_git

CHECKOUT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIRST_FOLDER = os.path.join(CHECKOUT, "tests", "golden", "first-folder")
"""A project's folder after one handoff, as the first versions wrote it."""
ADAPTERS = os.path.join(CHECKOUT, "adapters")
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


@functools.cache
def tracked_files() -> tuple[str, ...]:
    """Paths, relative to the checkout, of what git tracks or would track; all files where git is absent."""
    (listing,) = ask_git(CHECKOUT, ["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
    assert listing.ok, listing
    names = sorted({os.fsdecode(name) for name in listing.output.split(b"\0") if name})
    return tuple(name for name in names if os.path.isfile(os.path.join(CHECKOUT, name)))


def python_files(*folders: str) -> list[str]:
    """The tracked Python files below `folders`."""
    starts = tuple(f"{folder}/" for folder in folders)
    return [name for name in tracked_files() if name.endswith(".py") and name.startswith(starts)]


def read_text(name: str) -> str:
    """A tracked file's text; bytes that are no UTF-8 are kept as escapes."""
    with open(os.path.join(CHECKOUT, name), encoding="utf-8", errors="surrogateescape") as stream:
        return stream.read()


def parse(name: str) -> ast.Module:
    """A tracked Python file as a tree."""
    return parse_text(read_text(name))


@functools.cache
def parse_text(text: str) -> ast.Module:
    """The tree of a file's text; whoever asks again for the same text is given the same tree."""
    return ast.parse(text)


@functools.cache
def walk(module: ast.Module) -> tuple[ast.AST, ...]:
    """Every node of a file, as `ast.walk` yields them, gathered once for all tests that look at them."""
    return tuple(ast.walk(module))


def list_functions(module: ast.Module) -> list[FUNCTIONS]:
    """Every function of a file, also those within others; only statements are gone through."""
    found: list[FUNCTIONS] = []
    waiting: list[ast.AST] = [module]
    while waiting:
        node = waiting.pop()
        if isinstance(node, FUNCTIONS):
            found.append(node)
        for field in ("body", "orelse", "handlers", "finalbody", "cases"):
            inner = getattr(node, field, ())
            waiting += inner if isinstance(inner, list) else ()
    return found


def adapter_names() -> list[str]:
    """The adapters shipped, by their folders; beside them lies what they share."""
    return [name for name in sorted(os.listdir(ADAPTERS)) if os.path.isdir(os.path.join(ADAPTERS, name))]


def agent_names() -> list[str]:
    """The agents of the world; the scripted ones of the demo are ours."""
    return [name for name in adapter_names() if name not in {"demo", "understudy"}]


def read_exceptions(kind: str) -> dict[str, str]:
    """What may be otherwise than the house asks, each with its reason, by its place."""
    found: dict[str, str] = tomllib.loads(read_text("tests/house/exceptions.toml")).get(kind, {})
    return found
