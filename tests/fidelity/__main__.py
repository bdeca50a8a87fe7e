"""Print how faithful today's packets are: `python -m tests.fidelity [NAME…] [-v] [--no-talk] [--recall]`."""

import argparse
import os
import sys

from tests.fidelity.packets import TARGETS, Workshop, build_recall, own_folder
from tests.fidelity.scoring import Score, Total
from tests.fidelity.script import CASES, list_cases


def main() -> None:
    """Score the packets of all cases, or of those named."""
    wanted = _parse()
    recall = build_recall() if wanted.recall else None
    names = wanted.names or list_cases(wanted.cases)
    with own_folder() as folder:
        os.environ["AGENT_RELAY_HOME"] = os.path.join(folder, "home")
        workshop = Workshop(folder, wanted.cases, talk=not wanted.no_talk, recall=recall)
        for name in names:
            _print_case(workshop, name, verbose=wanted.verbose, keep=wanted.keep)
        totals = [workshop.total(place, names) for place in (0, 1)]
    for place, total in zip(("first target", "second target"), totals, strict=True):
        _print_total(place, total)
    _print_kinds(totals)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fidelity", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="Cases; by default all.")
    parser.add_argument("-v", "--verbose", action="store_true", help="What is missing, misleading, settled.")
    parser.add_argument("--no-talk", action="store_true", help="Without ordinary talk.")
    parser.add_argument("--recall", action="store_true", help="Questions may be looked up.")
    parser.add_argument("--cases", default=CASES, help="The folder of cases.")
    parser.add_argument("--keep", default="", help="A folder for the packets, and the sessions' digests.")
    return parser.parse_args()


def _print_case(workshop: Workshop, name: str, *, verbose: bool, keep: str) -> None:
    """The scores of one case for both targets; what they miss is told of the first."""
    laid = workshop.lay_out(name)
    first, second = TARGETS[laid.case.agent]
    for target in (first, second):
        text, score = workshop.score(name, target)
        _print_row(f"{name} → {target}", score)
        if verbose and target == first:
            _print_findings(score)
        if keep:
            _keep(text, os.path.join(keep, f"{name}-{target}.md"))
    if keep:
        _keep(laid.digest, os.path.join(keep, f"{name}-digest.txt"))


def _keep(text: str, path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _print_row(name: str, score: Score) -> None:
    no = score.questions - score.full - score.part
    _print(
        f"{name:34} full {score.full:2} part {score.part:2} no {no:2} of {score.questions:2}"
        f"  misleading {len(score.misleading)}  leaks {len(score.leaked)}"
        f"  settled {score.settled_untrue:2} untrue of {len(score.settled):2}"
        f"  characters {score.characters:5}  talk {100 * score.talk // max(1, score.characters):2} %"
    )


def _print_findings(score: Score) -> None:
    for question, grade in zip(score.truth.questions, score.grades, strict=True):
        if grade < 1:
            _print(f"      {grade:<3} {question.kind}: {question.question} → {question.answer}")
    for what, around in score.misleading:
        _print(f"      misleading: {what} :: {around}")
    for secret in score.leaked:
        _print(f"      leaked: {secret[:8]}…")
    for line in score.settled:
        _print(f"      settled: {' '.join(line.split())[:160]}")


def _print_total(place: str, total: Total) -> None:
    _print(
        f"\n{place}: full {total.recall:.1%}, with parts {total.recall_with_parts:.1%},"
        f" misleading {total.misleading:.2f} a session, leaks {total.leaks}, talk {total.talk:.1%},"
        f" settled {total.settled_untrue:.0%} untrue of {total.settled},"
        f" at most {total.characters} characters"
    )


def _print_kinds(totals: list[Total]) -> None:
    _print("\nanswered in full, by kind")
    kinds = [total.count_kinds() for total in totals]
    for kind, (_, asked) in kinds[0].items():
        shares = "  ".join(f"{counted[kind][0]:3} ({counted[kind][0] / asked:4.0%})" for counted in kinds)
        _print(f"{kind:12} of {asked:3}: {shares}")


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
