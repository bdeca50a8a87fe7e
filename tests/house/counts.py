"""Count what makes a house large or small.

`python -m tests.house.counts [COMMIT…]` prints a column for each commit, and one for the working tree.

Code lines are those that hold a token other than a
docstring or a comment.
"""

import ast
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

from tests.house import tree

PACKAGE = "agent_relay"
SMALL_LINES = 60


def list_modules(checkout: str) -> dict[str, str]:
    """Return the package's modules by dotted name, each with its path; packages by their `__init__`."""
    found = {}
    for folder, folders, names in os.walk(os.path.join(checkout, PACKAGE)):
        folders[:] = [name for name in folders if name != "__pycache__"]
        for name in names:
            if name.endswith(".py"):
                path = os.path.join(folder, name)
                dotted = os.path.relpath(path, checkout)[: -len(".py")].replace("/", ".")
                found[dotted.removesuffix(".__init__")] = path
    return found


def count(checkout: str) -> dict[str, int]:
    """Return every figure of one checkout, by what it counts."""
    paths = list_modules(checkout)
    texts = {name: _read(path) for name, path in paths.items()}
    modules = {name: tree.parse_text(text) for name, text in texts.items()}
    return {
        "modules": len(modules),
        "modules without packages": sum(not _is_package(path) for path in paths.values()),
        "lines of code": sum(map(_count_code, texts.values())),
        f"modules with one importer and under {SMALL_LINES} lines": len(find_small(checkout)),
        "files in the largest room": max(count_rooms(checkout).values()),
        "public class names defined twice": sum(times > 1 for times in _count_classes(modules).values()),
        "broad excepts": sum(map(_count_broad, modules.values())),
    }


def find_small(checkout: str) -> list[str]:
    """Return the modules with one importer and under 60 lines, packages aside."""
    paths = list_modules(checkout)
    texts = {name: _read(path) for name, path in paths.items()}
    importers = _find_importers({name: tree.parse_text(text) for name, text in texts.items()})
    return sorted(
        name
        for name, users in importers.items()
        if len(users) == 1 and texts[name].count("\n") < SMALL_LINES and not _is_package(paths[name])
    )


def find_double_classes(checkout: str) -> list[str]:
    """Return the public class names that more than one module defines."""
    modules = {name: tree.parse_text(_read(path)) for name, path in list_modules(checkout).items()}
    return sorted(name for name, times in _count_classes(modules).items() if times > 1)


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _is_package(path: str) -> bool:
    return os.path.basename(path) == "__init__.py"


def _find_importers(modules: Mapping[str, ast.Module]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for name, module in modules.items():
        for target in list_imports(module):
            if target in modules and target != name:
                found[target].add(name)
    return found


def list_imports(module: ast.Module) -> Iterator[str]:
    """The dotted names a module may import: of `from a import b` both `a` and `a.b`."""
    for node in tree.walk(module):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _count_code(text: str) -> int:
    skipped = {
        line
        for node in tree.walk(tree.parse_text(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    blank = {
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENDMARKER,
    }
    held = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in blank
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(held - skipped)


def count_rooms(checkout: str) -> Counter[str]:
    """Return how many files each folder of the package holds.

    A folder within counts as one file, `__init__` only where there are none.
    """
    rooms: Counter[str] = Counter()
    top = os.path.join(checkout, PACKAGE)
    for folder, folders, names in os.walk(top):
        folders[:] = [name for name in folders if name != "__pycache__"]
        if folder == top:
            continue
        files = [name for name in names if name.endswith(".py")]
        inner = [name for name in folders if os.path.exists(os.path.join(folder, name, "__init__.py"))]
        rooms[os.path.relpath(folder, top).replace("/", ".")] = max(len(files), len(files) - 1 + len(inner))
    return rooms


def _count_classes(modules: Mapping[str, ast.Module]) -> Counter[str]:
    return Counter(
        node.name
        for module in modules.values()
        for node in module.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )


def _count_broad(module: ast.Module) -> int:
    return sum(
        isinstance(node, ast.ExceptHandler)
        and (node.type is None or ast.unparse(node.type) in {"Exception", "BaseException"})
        for node in tree.walk(module)
    )


def _unpack(commit: str, folder: str) -> None:
    archive = subprocess.run(
        ["git", "archive", commit, PACKAGE], cwd=tree.CHECKOUT, capture_output=True, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
        packed.extractall(folder, filter="data")


def main() -> None:
    """Print the figures of the working tree, beside those of the commits named on the command line."""
    columns = {}
    with tempfile.TemporaryDirectory() as folder:
        for commit in sys.argv[1:]:
            place = os.path.join(folder, commit.replace("/", "_"))
            _unpack(commit, place)
            columns[commit[:10]] = count(place)
    columns["now"] = count(tree.CHECKOUT)
    rows = [
        ("", *columns),
        *((what, *(figures[what] for figures in columns.values())) for what in columns["now"]),
    ]
    for what, *values in rows:
        sys.stdout.write(f"{what:52}" + "".join(f"{value:>12}" for value in values) + "\n")


if __name__ == "__main__":
    main()
