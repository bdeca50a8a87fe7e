"""What is asked in plain words is understood without typer, and as typer does."""

import subprocess
import sys

import msgspec
import pytest
import typer.main

from agent_relay.faces.cli.metrics._options import MetricsOptions, parse_options
from agent_relay.faces.cli.metrics.command import metrics
from tests.faces.cli_run import create_world
from tests.house.test_hot_paths import PROBE

_BEGUN = """
import os
import sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        # What reads the index is the first thing that is loaded behind the readers' begin.
        if name == "agent_relay.usage._scan_reader":
            heavy = {"dataclasses", "sqlite3", "asyncio", "pydantic", "genai_prices"}
            print("LOADED", *sorted(heavy & set(sys.modules)), flush=True)
            os._exit(0)

sys.meta_path.insert(0, Finder())
from agent_relay.faces.cli.metrics.entry import run
run(["--all"])
"""
PLAIN: list[tuple[list[str], MetricsOptions]] = [
    ([], MetricsOptions()),
    (["--all"], MetricsOptions(everything=True)),
    (
        ["--all", "--by", "day", "--agent", "codex", "--json"],
        MetricsOptions("", False, True, "day", "", "codex", True),
    ),
    (["--chain", "01M7"], MetricsOptions("01M7", chain=True)),
    (["01M7", "--chain", "--csv"], MetricsOptions("01M7", chain=True, as_csv=True)),
    (["--since", "7d", "--since", "2w", "--json", "--json"], MetricsOptions(since="2w", as_json=True)),
    (["", "--by", ""], MetricsOptions(by="")),
    (
        ["--by", "nothing known", "--json", "--csv"],
        MetricsOptions(by="nothing known", as_json=True, as_csv=True),
    ),
    (["codex:a=b"], MetricsOptions("codex:a=b")),
]
LEFT = (
    ["--help"], ["--all", "--help"], ["-h"], ["--by"], ["--by=day"], ["--by", "-x"], ["--wrong"],
    ["one", "two"], ["", "two"], ["--"], ["--", "one"], ["-"], ["--al"], ["--since", "--all"],
)  # fmt: skip


@pytest.mark.parametrize(
    ("words", "asked"), PLAIN, ids=lambda one: " ".join(one) if type(one) is list else ""
)
def test_plain_words_mean_what_typer_makes_of_them(words: list[str], asked: MetricsOptions) -> None:
    """Two ways to understand one command must not drift apart."""
    app = typer.Typer(add_completion=False)
    heard: list[dict[str, object]] = []

    def hear(**values: object) -> None:
        heard.append(values)

    app.command()(metrics)
    command = typer.main.get_command(app)
    command.callback = hear
    command.main(words, standalone_mode=False)
    assert heard == [msgspec.structs.asdict(asked)]
    assert parse_options(words) == asked


@pytest.mark.parametrize("words", LEFT, ids=" ".join)
def test_help_mistakes_and_rare_spellings_are_left_to_typer(words: list[str]) -> None:
    """Its messages are the command's; nothing is guessed."""
    assert parse_options(words) is None


def test_every_option_of_the_command_can_be_said_plainly() -> None:
    """An option added to one of them is missed in the other."""
    app = typer.Typer(add_completion=False)
    app.command()(metrics)
    options = {name: one for one in typer.main.get_command(app).params for name in one.opts}
    assert {one.name for one in options.values()} == {
        one.name for one in msgspec.structs.fields(MetricsOptions)
    }
    for name, one in options.items():
        if name.startswith("--"):
            words = [name] if one.is_flag else [name, "7d"]  # type: ignore[attr-defined]  # options have it
            asked = parse_options(words)
            assert asked is not None
            assert msgspec.structs.asdict(asked)[str(one.name)] == (True if len(words) == 1 else "7d")


def test_an_answer_to_plain_words_loads_no_library_for_words(tmp_path: object) -> None:
    """It would be a tenth of the time of a first look at hundreds of megabytes."""
    world = create_world(f"{tmp_path}")
    code = PROBE.format(heavy=("typer", "rich"))
    done = subprocess.run(
        [sys.executable, "-c", code, "metrics", "--all"], cwd=world.cwd, env=world.environ(),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "HEAVY"


def test_nothing_that_is_slow_to_load_is_loaded_before_readers_begin(tmp_path: object) -> None:
    """Until then one processor works and the others wait."""
    world = create_world(f"{tmp_path}")
    done = subprocess.run(
        [sys.executable, "-c", _BEGUN], cwd=world.cwd, env=world.environ(),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == "LOADED\n"
