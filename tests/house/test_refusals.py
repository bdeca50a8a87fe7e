"""What is printed after `agent-relay: ` reads as one sentence there, whoever wrote it."""

import ast
from collections.abc import Iterator

from agent_relay.domain import errors
from tests.house import tree

OTHERS = {
    "UsageError",
    "EmulatorError",
    "HolderError",
    "SpawnError",
    "UnfinishedChangeError",
    "TreeOwnedError",
}
"""Refusals that are declared where they are raised."""
KINDS = {name for name in vars(errors) if name.endswith("Error")} | OTHERS
NAMES = {"AGENT_RELAY_HOME"}
"""Words that are written large wherever they stand."""


def list_refusals() -> Iterator[tuple[str, str, str]]:
    """Every refusal whose sentence stands in the code: where it is, how it begins and how it ends."""
    for name in tree.python_files("agent_relay"):
        for node in tree.walk(tree.parse(name)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in KINDS:
                match node.args:
                    case [ast.Constant(value=str(text)), *_]:
                        yield f"{name}:{node.lineno}", text, text
                    case [ast.JoinedStr(values=[first, *_] as values), *_]:
                        begins, ends = (
                            part.value if isinstance(part, ast.Constant) else "{"
                            for part in (first, values[-1])
                        )
                        yield f"{name}:{node.lineno}", str(begins), str(ends)


def test_a_refusal_begins_small_and_ends_without_a_stop() -> None:
    """It follows a colon; one that is quoted within another would end twice."""
    refusals = list(list_refusals())
    assert len(refusals) > 200
    wrong = [
        place
        for place, begins, ends in refusals
        if (begins[:1].isupper() and begins.split(" ")[0] not in NAMES) or ends.endswith(".")
    ]
    assert wrong == []
