"""Reads hundreds of megabytes of made-up logs with `agent-relay metrics` and with ccusage, in turns.

`python -m tests.bench.usage [--megabytes N] [--rounds N] [--ccusage PROGRAM]`. The program is `ccusage` as
npm installs it (npm install ccusage, in a folder outside the project), which starts a native one, or that one
itself; without it we are measured alone. The status is 1 where our tokens are not those that were written.
"""

import argparse
import glob
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass

from tests.bench.usage_logs import WRITERS, Totals
from tests.bench.weighing import weigh
from tests.support.relay_world import CHECKOUT as ROOT

Command = tuple[list[str], Mapping[str, str], str]
"""Words, environment and working folder."""


@dataclass(frozen=True)
class Run:
    """One run of a program: wall and processor time, what it printed."""

    wall_s: float
    cpu_s: float
    out: str


def run(words: list[str], environ: Mapping[str, str], cwd: str) -> Run:
    """The run of a program to its end. Raises RuntimeError where that is a failure."""
    with tempfile.TemporaryFile() as out:
        begin = time.perf_counter()
        child = subprocess.Popen(
            words, cwd=cwd, env=dict(environ), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.DEVNULL
        )
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - begin
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            raise RuntimeError(f"{words[0]} ended with {child.returncode}")
        out.seek(0)
        return Run(wall, used.ru_utime + used.ru_stime, out.read().decode())


def build_ours(home: str, agent: str) -> Command:
    """Our whole command."""
    words = [*(sys.executable, "-m", "agent_relay", "metrics", "--all"), *("--by", "day", "--agent", agent)]
    environ = _environ(home) | {"AGENT_RELAY_HOME": os.path.join(home, "relay"), "PYTHONPATH": ROOT}
    return [*words, "--json"], environ, home


def forget(home: str) -> None:
    """Our next run is a first one."""
    shutil.rmtree(os.path.join(home, "relay", "cache"), ignore_errors=True)


def repeat_line(home: str) -> None:
    """One of the logs has grown by its last line once more, which is no more usage."""
    logs = sorted(glob.glob(os.path.join(home, ".c*", "**", "*.jsonl"), recursive=True))
    with open(logs[0], "r+b") as log:
        last = log.readlines()[-1]
        log.write(last)


def build_ccusage(program: str, home: str, agent: str) -> Command:
    """The peer's daily report of the same agent, with the prices it brings."""
    return [program, agent, "daily", "--json", "--offline"], _environ(home), home


def _environ(home: str) -> dict[str, str]:
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": home,
        "TZ": "UTC",
        "LANG": "C.UTF-8",
        "CLAUDE_CONFIG_DIR": os.path.join(home, ".claude"),
        "CODEX_HOME": os.path.join(home, ".codex"),
    }


def parse_ours(out: str) -> Totals:
    """Our total."""
    total = json.loads(out)["total"]
    names = ("input_tokens", "cached_tokens", "cache_write_tokens", "output_tokens", "answers")
    return Totals(*(total[name] for name in names))


def parse_ccusage(out: str, agent: str) -> Totals:
    """The peer's total; its count of Codex' input includes the cached."""
    total = json.loads(out)["totals"]
    cached = total.get("cacheReadTokens", total.get("cachedInputTokens", 0))
    new = total["inputTokens"] - (cached if "cachedInputTokens" in total and agent == "codex" else 0)
    return Totals(new, cached, total.get("cacheCreationTokens", 0), total["outputTokens"])


def measure(agent: str, megabytes: int, rounds: int, program: str, *, is_odd: bool) -> bool:
    """Whether our tokens are those that were written; prints them, the peer's, and both programs' cost."""
    with tempfile.TemporaryDirectory(prefix="agent-relay-bench-") as home:
        written = WRITERS[agent](home, megabytes << 20, is_odd=is_odd)
        runs: dict[str, list[Run]] = {"first": [], "second": [], "grown": [], "ccusage": []}
        load = os.getloadavg()[0]
        ours, peer = build_ours(home, agent), build_ccusage(program, home, agent)
        for _ in range(rounds):
            forget(home)
            runs["first"].append(run(*ours))
            if program:
                runs["ccusage"].append(run(*peer))
            runs["second"].append(run(*ours))
            repeat_line(home)
            runs["grown"].append(run(*ours))
        forget(home)
        peaks = {"first": weigh(*ours), "second": weigh(*ours), "ccusage": weigh(*peer) if program else 0.0}
        found = parse_ours(runs["first"][0].out)
        is_right = all(
            parse_ours(one.out) == written for name in ("first", "second", "grown") for one in runs[name]
        )
        kind = "with partial counts, forks and subagents" if is_odd else "plain"
        sys.stdout.write(f"\n{agent}, {kind}, {megabytes} MB, {rounds} rounds, load {load:.1f}\n")
        _print_tokens("written", written)
        _print_tokens("agent-relay", found)
        if program:
            _print_tokens("ccusage", parse_ccusage(runs["ccusage"][0].out, agent))
        for name, done in runs.items():
            if done:
                _print_runs(name, done, runs["ccusage"])
        for name, peak in peaks.items():
            ratio = f"  of ccusage's: {peak / peaks['ccusage']:.2f}" if program else ""
            sys.stdout.write(f"  {name:12} peak {peak:6.0f} MB{ratio}\n")
        return is_right


def _print_tokens(name: str, totals: Totals) -> None:
    counts = (totals.input, totals.cached, totals.written, totals.output)
    sys.stdout.write(f"  {name:12}" + "".join(f"{count:>18,}" for count in counts) + "\n")


def _print_runs(name: str, runs: list[Run], peers: list[Run]) -> None:
    wall, cpu = (
        statistics.median(values) for values in zip(*((one.wall_s, one.cpu_s) for one in runs), strict=True)
    )
    line = f"  {name:12} wall {wall:6.2f} s  cpu {cpu:6.2f} s"
    if peers and runs is not peers:
        pairs = list(zip(runs, peers, strict=True))
        ratios = [
            statistics.median(one / other for one, other in values)
            for values in (
                [(one.wall_s, other.wall_s) for one, other in pairs],
                [(one.cpu_s, other.cpu_s) for one, other in pairs],
            )
        ]
        line += "  of ccusage's: " + ", ".join(f"{ratio:.2f}" for ratio in ratios)
    sys.stdout.write(line + "\n")


def main() -> int:
    """Measure all, and say by the status whether our tokens are right."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--ccusage", default=shutil.which("ccusage") or "", metavar="PROGRAM")
    arguments = parser.parse_args()
    right = [
        measure(agent, arguments.megabytes, arguments.rounds, arguments.ccusage, is_odd=is_odd)
        for agent in WRITERS
        for is_odd in (False, True)
    ]
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
