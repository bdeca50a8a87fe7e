"""A folder is a subject: its size, its door and its names are such that a stranger finds the way in."""

import ast
import os

from tests.house import counts, tree

MOST_FILES = 15


def test_a_room_has_at_most_fifteen_files() -> None:
    """What is more is read as a list, not as a subject; a folder within a room counts as one file."""
    assert {
        room: files for room, files in counts.count_rooms(tree.CHECKOUT).items() if files > MOST_FILES
    } == {}


def test_what_is_a_room_s_own_is_imported_by_nobody_else() -> None:
    """A module whose name begins with an underscore may change without a look at the rest of the package."""
    strays = []
    for name, path in counts.list_modules(tree.CHECKOUT).items():
        room = name if path.endswith("__init__.py") else name.rpartition(".")[0]
        for target in counts.list_imports(tree.parse(path)):
            parts = target.split(".")
            own = next(
                (index for index, part in enumerate(parts) if part[0] == "_" and part[1:2] != "_"), None
            )
            if parts[0] == counts.PACKAGE and own is not None:
                door = ".".join(parts[:own])
                if room != door and not room.startswith(f"{door}."):
                    strays.append(f"{name} -> {target}")
    assert strays == []


def test_a_room_introduces_itself_and_imports_nothing() -> None:
    """Its paragraph is where a stranger begins; what it imported, every small command would pay for."""
    wrong = []
    for folder, folders, names in os.walk(os.path.join(tree.CHECKOUT, counts.PACKAGE)):
        folders[:] = [name for name in folders if name != "__pycache__"]
        if "__init__.py" in names and folder != os.path.join(tree.CHECKOUT, counts.PACKAGE):
            module = tree.parse(os.path.join(folder, "__init__.py"))
            if not ast.get_docstring(module) or len(module.body) > 1:
                wrong.append(os.path.relpath(folder, tree.CHECKOUT))
    assert wrong == []


def test_public_class_names_are_unique() -> None:
    """A name that means two things has to be looked up wherever it is read."""
    assert counts.find_double_classes(tree.CHECKOUT) == []


def test_a_small_module_of_one_importer_has_its_reason() -> None:
    """Cutting a file because it grows is none."""
    assert counts.find_small(tree.CHECKOUT) == sorted(tree.read_exceptions("modules"))
