"""Measures us beside direct, script, dtach, tmux and screen in one run: a table, the bars, and JSON.

`python -m tests.bench.run [--quick] [--json FILE]`; its status is 1 where a bar is missed.
"""

import argparse
import json
import os
import platform
import statistics
import sys
from dataclasses import asdict, dataclass

from tests.bench.endurance import Idle, Stall, measure_idle, measure_stall
from tests.bench.measure import QUICK, Effort, Samples, compare, measure_echo, measure_flood, measure_paste
from tests.bench.starts import measure_starts
from tests.bench.switches import Switches, measure_switches, render_steps
from tests.bench.wrappers import NAMES

_QUIET_LOAD = 0.3


@dataclass(frozen=True)
class Bar:
    """A bound: what is compared, the value, and the bound it must keep."""

    what: str
    value: float
    bound: float
    at_most: bool

    @property
    def is_met(self) -> bool:
        """Whether the value keeps its bound."""
        return self.value <= self.bound if self.at_most else self.value >= self.bound


@dataclass(frozen=True)
class Results:
    """Everything one run measured."""

    echo_us: Samples
    flooded_echo_us: Samples
    recorded_mb_s: Samples
    truecolor_mb_s: Samples
    paste_mb_s: Samples
    starts_ms: Samples
    switches: Switches
    stall: Stall
    idle: Idle
    load: float


def measure(effort: Effort) -> Results:
    """All measurements, one after the other; the wrappers of each take turns.

    `load` is how many processes wanted to run before we began.
    """
    load = os.getloadavg()[0]
    return Results(
        _say("echo", measure_echo(effort, is_flooded=False)),
        _say("echo beside a flood", measure_echo(effort, is_flooded=True)),
        _say("recorded flood", measure_flood(effort, is_truecolor=False)),
        _say("truecolor flood", measure_flood(effort, is_truecolor=True)),
        _say("paste", measure_paste(effort)),
        _say("starts", measure_starts(effort)),
        measure_switches(effort),
        measure_stall(effort),
        measure_idle(effort),
        load,
    )


def _say(what: str, samples: Samples) -> Samples:
    sys.stderr.write(f"measured: {what}\n")
    return samples


def build_bars(results: Results, rounds: int) -> list[Bar]:
    """The bounds of our speed and size; a peer that could not be measured bounds nothing."""

    def against(what: str, samples: Samples, peer: str, bound: float, *, at_most: bool) -> list[Bar]:
        ratio = compare(samples, "relay", peer, rounds)
        if ratio is None and samples[peer]:
            ratio = float("inf") if at_most else 0.0
        return [] if ratio is None else [Bar(f"{what} / {peer}", ratio, bound, at_most)]

    def tail(what: str, samples: Samples, peer: str, bound: float) -> list[Bar]:
        theirs = _percentile(samples[peer], 99)
        return [Bar(what, _percentile(samples["relay"], 99) / theirs, bound, at_most=True)] if theirs else []

    stall, idle = results.stall, results.idle
    return [
        *against("echo p50", results.echo_us, "dtach", 1.0, at_most=True),
        *against("echo p50", results.echo_us, "tmux", 1.1, at_most=True),
        *tail("echo p99 / tmux", results.echo_us, "tmux", 1.2),
        *against("echo p50 beside a flood", results.flooded_echo_us, "tmux", 0.5, at_most=True),
        *tail("echo p99 beside a flood / tmux", results.flooded_echo_us, "tmux", 1.2),
        *against("recorded flood", results.recorded_mb_s, "dtach", 0.85, at_most=False),
        *against("recorded flood", results.recorded_mb_s, "tmux", 3.0, at_most=False),
        *against("truecolor flood", results.truecolor_mb_s, "script", 0.55, at_most=False),
        *against("paste", results.paste_mb_s, "tmux", 10.0, at_most=False),
        *_build_start_bars(results, rounds),
        Bar(
            "flood beside two terminals that do not read / alone, from the second second on",
            statistics.median(stall.beside_mb_s) / statistics.median(stall.alone_mb_s),
            0.9,
            at_most=False,
        ),
        Bar("screens of those terminals afterwards are exact", float(stall.same_screens), 1.0, at_most=False),
        Bar("holder's peak memory meanwhile, MB", stall.peak_mb, 64.0, at_most=True),
        Bar(f"memory of one of {idle.legs} idle legs, MB", idle.pss_mb, 10.0, at_most=True),
        Bar(f"processor time of {idle.legs} idle legs, %", idle.cpu_percent, 0.5, at_most=True),
    ]


def _build_start_bars(results: Results, rounds: int) -> list[Bar]:
    """The bounds of starts and of a switch."""

    def start(kind: str, bound: float) -> Bar:
        ratio = compare(results.starts_ms, kind, "python", rounds) or float("inf")
        return Bar(f"the agent's first byte, {kind} start / a bare Python", ratio, bound, at_most=True)

    took_s = results.switches.without_quitting_s
    what = "limit on the screen to successor spawned, without the quitting, s"
    return [start("warm", 4.0), start("cold", 15.0), Bar(what, took_s, 0.5, at_most=True)]


def render(results: Results, bars: list[Bar]) -> str:
    """The table and the bars as text."""
    rows = [
        ("echo p50, us", results.echo_us, 50),
        ("echo p99, us", results.echo_us, 99),
        ("  beside a flood p50, us", results.flooded_echo_us, 50),
        ("  beside a flood p99, us", results.flooded_echo_us, 99),
        ("recorded flood, MB/s", results.recorded_mb_s, 50),
        ("truecolor flood, MB/s", results.truecolor_mb_s, 50),
        ("paste, MB/s", results.paste_mb_s, 50),
    ]
    lines = [f"{'':28}" + "".join(f"{name:>9}" for name in NAMES)]
    for title, samples, percent in rows:
        lines.append(f"{title:28}" + "".join(f"{_show(samples[name], percent):>9}" for name in NAMES))
    lines += [
        "",
        *(
            f"{f'{kind} start, ms':28}{_percentile(times, 50):>9.1f}"
            for kind, times in results.starts_ms.items()
        ),
    ]
    lines += ["", *render_steps(results.switches)]
    stall = results.stall
    if results.load > _QUIET_LOAD * (os.cpu_count() or 1):
        lines += [
            "",
            f"The machine had other work (load {results.load:.1f}): measure again when it is quiet.",
        ]
    alone, beside = (statistics.median(rates) for rates in (stall.alone_mb_s, stall.beside_mb_s))
    lines += [
        "",
        f"A recorded flood: {alone:.0f} MB/s, {beside:.0f} MB/s beside two terminals that do not read.",
        "",
    ]
    for bar in bars:
        sign = "<=" if bar.at_most else ">="
        lines.append(f"{'ok  ' if bar.is_met else 'MISS'} {bar.what}: {bar.value:.2f} ({sign} {bar.bound:g})")
    return "\n".join(lines) + "\n"


def _show(values: list[float], percent: int) -> str:
    return f"{_percentile(values, percent):.1f}" if values else "-"


def _percentile(values: list[float], percent: int) -> float:
    """That value of the ordered ones; 0 where there are none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] if ordered else 0.0


def main() -> int:
    """Measure, print, and say by the status whether every bar is kept."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds: a look, not a verdict")
    parser.add_argument("--json", metavar="FILE", help="write everything measured there")
    arguments = parser.parse_args()
    effort = QUICK if arguments.quick else Effort()
    results = measure(effort)
    bars = build_bars(results, effort.rounds)
    sys.stdout.write(render(results, bars))
    if arguments.json:
        machine = {
            "python": platform.python_version(),
            "system": platform.platform(),
            "cores": os.cpu_count(),
        }
        document = {"machine": machine, "results": asdict(results), "bars": [asdict(bar) for bar in bars]}
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(document, file, indent=1)
    return 0 if all(bar.is_met for bar in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
