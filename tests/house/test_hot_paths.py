"""Commands people wait for start at about the cost of a bare Python."""

import os
import statistics
import subprocess
import sys
import time

import pytest

from tests.faces.cli_run import create_world
from tests.house import tree

HEAVY = ("typer", "click", "rich", "pydantic", "asyncio", "jinja2", "msgspec", "platformdirs", "dataclasses")
PROBE = """
import sys
sys.argv = ["agent-relay", *sys.argv[1:]]
from agent_relay.__main__ import main
try:
    main()
finally:
    print("HEAVY", *sorted(set({heavy!r}) & set(sys.modules)))
"""
HOT = (
    ("--version",),
    ("--help",),
    ("status",),
    ("status", "--json"),
    ("attach", "--help"),
    ("attach",),
    ("demo-agent-that-is-not",),
    ("agent", "demo", "--help"),
)


@pytest.mark.parametrize("words", HOT, ids=" ".join)
def test_hot_commands_load_nothing_heavy(words: tuple[str, ...], tmp_path: os.PathLike[str]) -> None:
    """Typer alone costs ten times a bare Python; a prompt that calls `status` would be felt."""
    world = create_world(f"{tmp_path}")
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(heavy=HEAVY), *words],
        cwd=world.cwd,
        env=world.environ(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert [line for line in done.stdout.splitlines() if line.startswith("HEAVY")] == ["HEAVY"]


@pytest.mark.bench
@pytest.mark.parametrize(
    ("words", "ratio"), [(("--version",), 1.6), (("status",), 4.0)], ids=["version", "status"]
)
def test_hot_commands_cost_little_more_than_python(
    words: tuple[str, ...], ratio: float, tmp_path: os.PathLike[str]
) -> None:
    """Measured against `python -c pass`, in turns in the same run, by medians."""
    world = create_world(f"{tmp_path}")
    start = (
        f"import sys; sys.path.insert(0, {tree.CHECKOUT!r}); "
        "from agent_relay.__main__ import main; sys.exit(main())"
    )

    def measure(code: str, *rest: str) -> float:
        begin = time.perf_counter()
        subprocess.run(
            [sys.executable, "-I", "-c", code, *rest],
            cwd=world.cwd,
            env=world.environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        return time.perf_counter() - begin

    pairs = [(measure("pass"), measure(start, *words)) for _ in range(40)]
    bare, ours = (statistics.median(column) for column in zip(*pairs, strict=True))
    assert ours <= bare * ratio
