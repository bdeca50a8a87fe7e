"""`kill -9` of daemon, holder, agent and client at random moments around a limit: the prompt is never lost.

`python -m tests.e2e.kill_rounds --rounds 500 --seed 1 [--at-once 2] [--only NUMBER] [--standby]`; prints a
table, and its status is 1 where a round lost the prompt, got stuck or would need a repair by hand.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed

from tests.support.kill_round import (
    POINTS,
    STANDBY_POINTS,
    STANDBY_VICTIMS,
    VICTIMS,
    Plan,
    Result,
    build_plan,
    play_round,
)

_HOWS = ("itself", "command", "lost")
_HEADS = ("by itself", "one step", "LOST")


def main(words: list[str]) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="kill_rounds", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=1, help="how many rounds run side by side")
    parser.add_argument("--only", type=int, default=0, help="this round of the seed alone")
    parser.add_argument("--standby", action="store_true", help="the next agent is started ahead")
    given = parser.parse_args(words)
    numbers = [given.only] if given.only else range(1, given.rounds + 1)
    results: list[Result] = []
    plans = [build_plan(given.seed, number, standby=given.standby) for number in numbers]
    for result in play_all(plans, given.at_once):
        results.append(result)
        if result.how == "lost":
            sys.stdout.write(f"round {result.plan.number} ({result.plan.name}): {result.why}\n")
        elif len(results) % 25 == 0:
            sys.stdout.write(f"{len(results)} rounds\n")
        sys.stdout.flush()
    sys.stdout.write("\n".join(render_table(results)) + "\n")
    return 1 if any(result.how == "lost" for result in results) else 0


def play_all(plans: Iterable[Plan], at_once: int) -> Iterator[Result]:
    """The results as they come."""
    with ProcessPoolExecutor(at_once) as pool:
        for done in as_completed([pool.submit(play_round, plan) for plan in plans]):
            yield done.result()


def render_table(results: list[Result]) -> list[str]:
    """How the prompt reached a successor, by whom the blows hit and by the point they waited for."""
    lines = [f"{'':28}{'rounds':>8}" + "".join(f"{head:>13}" for head in _HEADS)]

    def add(name: str, some: list[Result]) -> None:
        counted = Counter(result.how for result in some)
        lines.append(f"{name:28}{len(some):>8}" + "".join(f"{counted[how]:>13}" for how in _HOWS))

    is_ahead = any(one.plan.standby for one in results)
    for victim in STANDBY_VICTIMS if is_ahead else VICTIMS:
        add(
            f"kill {victim}",
            [one for one in results if any(blow.victim == victim for blow in one.plan.blows)],
        )
    for point in STANDBY_POINTS if is_ahead else POINTS:
        add(f"after {point}", [one for one in results if one.plan.point == point])
    add("all", results)
    seconds = sorted(result.seconds for result in results)
    lines.append(f"seconds a round: median {seconds[len(seconds) // 2]:.1f}, longest {seconds[-1]:.1f}")
    lost = [str(result.plan.number) for result in results if result.how == "lost"]
    lines.append(f"lost: {', '.join(lost) if lost else 'none'}")
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
