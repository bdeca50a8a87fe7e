"""What other tools hand over of the cases of `tests/fidelity`, scored like our packets.

Run as `python -m tests.bench.fidelity [CASE…]`. `continues` and `session-migrate` are looked for on the path,
or in `CONTINUES` and `SESSION_MIGRATE`, a command each. They run without a network, in a home of their own
that holds one transcript where its agent would have left it.
"""

import json
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from tests.bench.packets import inspect_session, run_alone
from tests.fidelity.packets import TARGETS, build_text, own_folder
from tests.fidelity.scoring import Score, Total, score_text
from tests.fidelity.script import CASES, list_cases, load_case
from tests.fidelity.transcripts import LaidOut, lay_out

_READ_BY_MIGRATE = {"claude": "codex", "codex": "claude"}


@dataclass(frozen=True, slots=True)
class Peer:
    """A tool and the text a successor reads of what it writes in a home; empty where it writes nothing."""

    name: str
    write: Callable[[LaidOut, str], str]


def find_peers() -> Iterator[Peer]:
    """Ours, and the others that are installed."""
    yield Peer("agent-relay", _build)
    for preset in ("standard", "full") if (command := _find_command("continues")) else ():
        yield Peer(f"cli-continues, {preset}", partial(_inspect, command, preset))
    if command := _find_command("session-migrate"):
        yield Peer("session-migrate", partial(_convert, command))


def _find_command(name: str) -> list[str]:
    named = os.environ.get(name.upper().replace("-", "_"), "")
    return shlex.split(named or shutil.which(name) or "")


def _build(laid: LaidOut, _: str) -> str:
    return build_text(laid, TARGETS[laid.case.agent][0])[0]


def _inspect(command: list[str], preset: str, laid: LaidOut, home: str) -> str:
    return inspect_session(command, preset, laid.case.agent, laid.transcript, home)


def _convert(command: list[str], laid: LaidOut, home: str) -> str:
    """What another agent would resume: every text of the session it wrote that has more than one word."""
    target = _READ_BY_MIGRATE.get(laid.case.agent, "codex")
    path = os.path.join(home, "converted.jsonl")
    run_alone([*command, "convert", "--to", target, "--output", path, laid.transcript], home)
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return "\n".join(text for line in file for text in _list_texts(json.loads(line)))


def _list_texts(value: object) -> Iterator[str]:
    match value:
        case str():
            if len(value.split()) > 1:
                yield value
        case dict():
            for part in value.values():
                yield from _list_texts(part)
        case list():
            for part in value:
                yield from _list_texts(part)


def main() -> None:
    """Write one table: every tool on the cases it reads, and ours on the same ones."""
    names = sys.argv[1:] or list_cases(CASES)
    with own_folder() as folder:
        os.environ["AGENT_RELAY_HOME"] = os.path.join(folder, "relay")
        laid = [lay_out(load_case(name), folder) for name in names]
        ours, *peers = find_peers()
        scores = {one.case.name: _score(ours, one) for one in laid}
        _print_row(ours.name, [score for score in scores.values() if score], len(laid))
        for peer in peers:
            found = {one.case.name: score for one in laid if (score := _score(peer, one))}
            _print_row(peer.name, list(found.values()), len(laid))
            _print_row(
                "agent-relay, same cases", [score for name in found if (score := scores[name])], len(laid)
            )


def _score(peer: Peer, laid: LaidOut) -> Score | None:
    with tempfile.TemporaryDirectory() as home:
        text = peer.write(laid, home)
    return score_text(text, laid.case.truth) if text else None


def _print_row(name: str, scores: list[Score], cases: int) -> None:
    if not scores:
        sys.stdout.write(f"| {name} | 0 of {cases} |\n")
        return
    total = Total(tuple(scores))
    secrets = sum(len(score.truth.secrets) for score in scores)
    sizes = sorted(score.characters for score in scores)
    sys.stdout.write(
        f"| {name} | {len(scores)} of {cases} | {total.recall:.1%} | {total.misleading:.2f}"
        f" | {total.leaks} of {secrets} | {total.talk:.1%} | {sizes[0]} to {sizes[-1]} |\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    main()
