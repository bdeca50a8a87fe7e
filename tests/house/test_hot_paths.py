"""Commands people wait for start at about the cost of a bare Python."""

import os
import shutil
import statistics
import subprocess
import sys
import time

import pexpect
import pytest

from agent_relay.agents.adapter_folders import find_example_folder
from tests.faces.cli_run import create_world
from tests.faces.terminals import Terminals
from tests.house import tree
from tests.support.sizes import sized

HEAVY = ("typer", "click", "rich", "pydantic", "asyncio", "jinja2", "msgspec", "platformdirs", "dataclasses")
# Of Python's own: together as much again as Python itself, so the hottest do without.
SLOW = ("json", "re", "typing")
PROBE = """
import os
import sys
os._exit = sys.exit  # else nothing could be said after a command that ends at once
sys.argv = ["agent-relay", *sys.argv[1:]]
from agent_relay.__main__ import main
try:
    main()
finally:
    print("HEAVY", *sorted(set({heavy!r}) & set(sys.modules)))
"""
HOTTEST = (
    ("--version",),
    ("--help",),
    ("status",),
    ("attach", "--help"),
    ("attach",),
    ("agent", "demo", "--help"),
)
HOT = (("status", "--json"), ("demo-agent-that-is-not",))
# What is made of documents and screens, and who only asks the daemon or reads journals has no use for.
BULKY = ("rich", "asyncio", "jinja2", "msgspec", "agent_relay.domain.documents.adapter")
BULKY_BUT_MSGSPEC = tuple(name for name in BULKY if name != "msgspec")
ASKING = (("sessions",), ("daemon", "stop"))
# Every event and all that is folded from them: as structs, a fifth of what they would cost as dataclasses.
FOLDING = (
    *(("limits",), ("stop",), ("relay",), ("race", "list")),
    *(("handoff", "list"), ("handoff", "list", "--json")),
)
READING = (("packet", "show"), ("packet", "edit"), ("handoff", "show", "none"))
TURNS = (
    ("run", "demo", "a task", "--continue", "none"),
    ("chat", "demo", "understudy", "a task", "--continue", "none"),
)


# What each group of commands has no use for; those it needs are not in its list.
UNWANTED = {
    HOTTEST: HEAVY + SLOW,
    HOT: HEAVY,
    READING: BULKY_BUT_MSGSPEC,
    FOLDING: (*BULKY_BUT_MSGSPEC, "pydantic"),
    ASKING: (*BULKY, "pydantic"),
    TURNS: (*BULKY, "typer", "pydantic", "dataclasses"),
}
CASES = [(unwanted, words) for group, unwanted in UNWANTED.items() for words in group]


@pytest.mark.size("every")
@pytest.mark.parametrize(
    ("unwanted", "words"),
    sized(CASES, [(UNWANTED[group], group[0]) for group in UNWANTED], name=lambda case: " ".join(case[1])),  # type: ignore[index]
)
def test_commands_load_nothing_they_have_no_use_for(
    unwanted: tuple[str, ...], words: tuple[str, ...], tmp_path: os.PathLike[str]
) -> None:
    """Typer alone costs ten times a bare Python, and a line of import too many was seen by nobody."""
    world = create_world(f"{tmp_path}")
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(heavy=unwanted), *words],
        cwd=world.cwd,
        env=world.environ(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert [line for line in done.stdout.splitlines() if line.startswith("HEAVY")] == ["HEAVY"]


@pytest.mark.size("test")
def test_a_first_agent_waits_for_nothing_that_only_the_daemon_needs(tmp_path: os.PathLike[str]) -> None:
    """What agents keep themselves here is looked for by the daemon, which has loaded what that needs."""
    terminals = Terminals(create_world(f"{tmp_path}"))
    try:
        child = terminals.spawn("-c", PROBE.format(heavy=HEAVY + BULKY), "agent", "demo")
        child.expect_exact("ready | demo")
        child.send("leave\r")
        child.expect(r"HEAVY([^\r]*)\r")
        assert child.match is not None
        assert child.match[1] == ""
    finally:
        terminals.close()


LATE = (
    "pydantic",
    "jinja2",
    "requests",
    "watchdog",
    "urllib.request",
    "dataclasses",
    "typer",
)
"""What a daemon loads after its start; the first agent waits for none of it."""


@pytest.mark.size("test")
def test_a_daemon_answers_before_it_has_loaded_what_no_start_needs() -> None:
    """Each of them is a tenth of a second or a part of that which the first agent would wait for."""
    code = (
        "import sys, agent_relay.daemon.__main__, agent_relay.daemon.run, agent_relay.daemon._application;"
        f" print(*sorted(set({LATE!r}) & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tree.CHECKOUT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split() == []


@pytest.mark.size("bench")
def test_hot_commands_cost_little_more_than_python(tmp_path: os.PathLike[str]) -> None:
    """Measured against `python -c pass`, in turns in the same run, by medians; `status` shows a session."""
    world = create_world(f"{tmp_path}")
    shutil.copytree(find_example_folder(), f"{world.cwd}/.agent-relay", symlinks=True)
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

    rows = [
        (measure("pass"), measure(start, "--version"), measure(start, "status", "--all")) for _ in range(40)
    ]
    bare, version, status = (statistics.median(column) for column in zip(*rows, strict=True))
    sys.stdout.write(
        f"bare {bare * 1000:.1f} ms, --version {version / bare:.2f}, status {status / bare:.2f}\n"
    )
    assert version <= bare * 1.6
    assert status <= bare * 4


@pytest.mark.size("bench")
def test_attaching_costs_little_more_than_python(tmp_path: os.PathLike[str]) -> None:
    """From the word to the agent's screen: people switch between terminals all day."""
    terminals = Terminals(create_world(f"{tmp_path}"))
    try:
        first = terminals.open("agent", "demo")
        first.expect_exact("ready | demo")
        first.send("\x1d/detach\r")
        first.expect(pexpect.EOF)
        start = (
            f"import sys; sys.path.insert(0, {tree.CHECKOUT!r}); "
            "from agent_relay.__main__ import main; main()"
        )
        rows = []
        for _ in range(20):
            begin = time.perf_counter()
            bare = terminals.spawn("-I", "-c", "print('ready | demo')")
            bare.expect_exact("ready | demo")
            middle = time.perf_counter()
            child = terminals.spawn("-I", "-c", start, "attach")
            child.expect_exact("ready | demo")
            rows.append((middle - begin, time.perf_counter() - middle))
            bare.close()
            child.close()
        bare_s, attach_s = (statistics.median(column) for column in zip(*rows, strict=True))
        sys.stdout.write(f"attach {attach_s / bare_s:.2f} of a bare Python\n")
        assert attach_s <= bare_s * 2.5
    finally:
        terminals.close()
