"""Code keeps the size, the names and the words the house agreed on."""

import ast
import os
import re
from collections.abc import Iterator

from tests.house import tree

FILE_LINES = 400
FUNCTION_LINES = 45
BANNED_NAMES = {"utils", "util", "helpers", "helper", "core", "common", "manager", "service", "base", "misc"}
QUESTION_WORDS = {"What", "How", "Who", "Whether", "Where", "Which", "When", "Why"}


def test_files_stay_under_four_hundred_lines() -> None:
    """A file that no longer fits a reader's head has a seam along which it wants to be cut."""
    allowed = tree.read_exceptions("files")
    long = {
        name: count
        for name in tree.python_files("agent_relay", "tests", "docs", "adapters", "examples")
        if (count := tree.read_text(name).count("\n")) > FILE_LINES and name not in allowed
    }
    assert long == {}


def test_functions_fit_a_screen() -> None:
    """What fits a screen is read as a whole; the rest is trusted, and should not be."""
    allowed = tree.read_exceptions("functions")
    long = {
        f"{name}:{function.name}": count
        for name in tree.python_files("agent_relay", "tests", "docs", "adapters", "examples")
        for function in tree.list_functions(tree.parse(name))
        if (count := (function.end_lineno or 0) - function.lineno + 1) > FUNCTION_LINES
        and f"{name}:{function.name}" not in allowed
    }
    assert long == {}


def test_values_below_the_faces_are_structs() -> None:
    """A dataclass takes 40 times as long to define, at every start, and `replace` is for structs."""
    assert [
        name
        for name in tree.python_files("agent_relay")
        if not name.startswith("agent_relay/faces/")
        for node in tree.parse(name).body
        if isinstance(node, ast.ImportFrom | ast.Import)
        and "dataclasses" in (getattr(node, "module", None), *(alias.name for alias in node.names))
    ] == []


def test_every_exception_is_still_needed() -> None:
    """An exception that outlives its cause invites the next one."""
    sizes = {
        f"{name}:{function.name}": (function.end_lineno or 0) - function.lineno + 1
        for name in {entry.split(":")[0] for entry in tree.read_exceptions("functions")}
        for function in tree.list_functions(tree.parse(name))
    }
    assert [
        entry for entry in tree.read_exceptions("functions") if sizes.get(entry, 0) <= FUNCTION_LINES
    ] == []
    lines = {name: tree.read_text(name).count("\n") for name in tree.read_exceptions("files")}
    assert [name for name, count in lines.items() if count <= FILE_LINES] == []


def test_names_say_what_a_module_is_for() -> None:
    """A drawer named `utils` takes anything, so everything ends there."""
    parts = {
        name: set(os.path.splitext(name)[0].split("/"))
        for name in tree.python_files("agent_relay", "tests", "adapters")
    }
    assert {name for name, words in parts.items() if words & BANNED_NAMES} == set()


def test_every_module_says_in_one_sentence_what_it_is_for() -> None:
    """The first line is the module's contract with its reader."""
    silent = [
        name
        for name in tree.python_files("agent_relay", "docs", "adapters")
        if not (ast.get_docstring(tree.parse(name)) or "").split("\n")[0].rstrip().endswith((".", ":"))
    ]
    assert silent == []


def test_no_docstring_opens_with_a_question_word() -> None:
    """The first words say what something returns, does or is; a question makes the reader work it out."""
    assert [
        f"{name}:{line}: {text}"
        for name in tree.python_files("agent_relay")
        for line, text in _docstrings(tree.parse(name))
        if re.split(r"\W", text, maxsplit=1)[0] in QUESTION_WORDS
    ] == []


def test_agents_are_data() -> None:
    """Adding an agent is adding a folder: code that knows a name would have to change for the next one."""
    word = re.compile(rf"(?<![a-z])({'|'.join(tree.agent_names())})(?![a-z])", re.IGNORECASE)
    named = [
        f"{name}:{line}: {text}"
        for name in tree.python_files("agent_relay")
        if not name.startswith("agent_relay/transcripts/")
        for line, text in _code_words(tree.parse(name))
        if word.search(text)
    ]
    assert named == []


def test_no_test_is_skipped_without_a_reason() -> None:
    """A skipped test is a promise nobody keeps; its reason must be one a user would accept."""
    bare = re.compile(r"pytest\.(?:mark\.)?(?:skip|xfail)(?:if)?\b(?!\([^)]*reason=)", re.DOTALL)
    found = [name for name in tree.python_files("tests") if bare.search(tree.read_text(name))]
    assert [name for name in found if name != "tests/house/test_shape.py"] == []


def test_every_test_module_and_test_says_why_it_matters() -> None:
    """The name is the rule; the docstring is why breaking it would hurt somebody."""
    silent = [
        f"{name}:{function.name}"
        for name in tree.python_files("tests")
        for function in tree.list_functions(tree.parse(name))
        if function.name.startswith("test_") and not ast.get_docstring(function)
    ]
    assert silent == []


def _docstrings(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Lines and texts of all strings that stand alone, those below constants included."""
    for node in tree.walk(module):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield node.lineno, text.lstrip()


def _code_words(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Identifiers and string constants with their lines; docstrings are prose, not code."""
    prose = {
        id(node.body[0].value)
        for node in tree.walk(module)
        if isinstance(node, ast.Module | ast.ClassDef | tree.FUNCTIONS)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in tree.walk(module):
        match node:
            case ast.Constant(value=str(text)) if id(node) not in prose:
                yield node.lineno, text
            case ast.Name(id=text) | ast.Attribute(attr=text):
                yield node.lineno, text
            case ast.FunctionDef(name=text) | ast.ClassDef(name=text) | ast.AsyncFunctionDef(name=text):
                yield node.lineno, text
            case ast.arg(arg=text):
                yield node.lineno, text
