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


@functools.cache
def parse(name: str) -> ast.Module:
    """A tracked Python file as a tree."""
    return ast.parse(read_text(name), name)


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
