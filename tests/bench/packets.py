"""What other tools hand over of the same transcripts, where they are installed.

Run as `python -m tests.bench.packets`.
Each tool runs without a network, in a home of its own that holds one transcript where the agent would have
left it. `continues` is looked for on the path (or in `CONTINUES`, a command), and so is another tool called
`agent-relay` in `AGENT_RELAY_TOOL`, an executable. Whatever they write is scored like a packet.
"""

import contextlib
import json
import os
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from agent_relay.faces.cli.session.packet_transfer import build_offline
from agent_relay.packet.freshness import KINDS, FactKind, Score, score_text
from tests.support.corpus import Sample, lay_out, list_names
from tests.support.corpus_story import CORPUS

_ALONE = ["unshare", "--map-root-user", "--net", "--mount"]
_UUID = "0f0f0f0f-1111-4111-a111-111111111111"
_PLACES = {
    "claude": f".claude/projects/x/{_UUID}.jsonl",
    "codex": f".codex/sessions/2026/11/20/rollout-2026-11-20T08-00-00-{_UUID}.jsonl",
    "gemini": ".gemini/tmp/x/chats/",
    "opencode": ".local/share/opencode/opencode.db",
}
# The other tool hands over a repository: an empty one at the place the transcript names.
_REPOSITORY = (
    'mount -t tmpfs tmpfs /home && mkdir -p "$1" && cd "$1" && git init -q . '
    "&& git -c user.name=a -c user.email=a@b commit -q --allow-empty -m start "
    '&& "$2" "$3" --from "$4" --no-launch --yes >&2; cat .agent-relay/sessions/*/objects/handoffs/*/packet.md'
)
_LIMIT = 60.0


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool and what it writes of a transcript laid out in a home; empty where it finds nothing."""

    name: str
    write: Callable[[Sample, str], str]


def find_tools() -> Iterator[Tool]:
    """Ours, and those of the others that are installed."""
    yield Tool("agent-relay", _build)
    command = os.environ.get("CONTINUES") or shutil.which("continues")
    for preset in ("standard", "full") if command else ():
        yield Tool(f"cli-continues, {preset}", partial(_inspect, shlex.split(command or ""), preset))
    other = os.environ.get("AGENT_RELAY_TOOL", "")
    if other:
        yield Tool("agent-relay-tool", partial(_hand_over, other))


def _build(sample: Sample, _: str) -> str:
    return build_offline(sample.agent, sample.path, _target(sample))[1]


def _target(sample: Sample) -> str:
    return "claude" if sample.agent == "codex" else "codex"


def place_transcript(agent: str, transcript: str, home: str) -> None:
    """The transcript where its agent keeps it; a name the agent would not give is replaced."""
    path = os.path.join(home, _PLACES[agent])
    path = os.path.join(path, os.path.basename(transcript)) if path.endswith("/") else path
    os.makedirs(os.path.dirname(path), exist_ok=True)
    shutil.copy(transcript, path)


def run_alone(words: list[str], home: str) -> str:
    """What a program printed, in a home of its own and without a network."""
    env = {"HOME": home, "PATH": f"{home}/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb"}
    done = subprocess.run(
        [*_ALONE, *words], env=env, cwd=home, capture_output=True, timeout=_LIMIT, check=False
    )
    return done.stdout.decode(errors="replace")


def _inspect(command: list[str], preset: str, sample: Sample, home: str) -> str:
    return inspect_session(command, preset, sample.agent, sample.path, home)


def inspect_session(command: list[str], preset: str, agent: str, transcript: str, home: str) -> str:
    """What `continues` writes of the newest session it lists."""
    place_transcript(agent, transcript, home)
    if agent == "opencode":
        _complete(os.path.join(home, _PLACES["opencode"]))
    lines = run_alone([*command, "list", "--jsonl"], home).splitlines()
    listed = [json.loads(line) for line in lines if line.startswith("{")]
    if not listed:
        return ""
    path = os.path.join(home, "handoff.md")
    run_alone([*command, "inspect", str(listed[0]["id"]), "--preset", preset, "--write-md", path], home)
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read()


def _complete(path: str) -> None:
    """Add the table and the columns it asks for and that the corpus, like newer databases, lacks."""
    with contextlib.closing(sqlite3.connect(path)) as database, contextlib.suppress(sqlite3.Error):
        for column in ("additions", "deletions", "files"):
            database.execute(f"ALTER TABLE session ADD COLUMN summary_{column} integer")
        database.execute("CREATE TABLE project (id text, worktree text)")
        database.execute("INSERT INTO project SELECT DISTINCT project_id, directory FROM session")
        database.commit()


def _hand_over(other: str, sample: Sample, home: str) -> str:
    place_transcript(sample.agent, sample.path, home)
    os.makedirs(f"{home}/bin")
    for agent in _PLACES:  # it looks for the agents it knows, and starts none
        with open(f"{home}/bin/{agent}", "w", encoding="ascii") as file:
            file.write("#!/bin/sh\necho 1.0\n")
        os.chmod(file.name, 0o700)
    return run_alone(
        ["sh", "-c", _REPOSITORY, "-", _find_cwd(sample), other, _target(sample), sample.agent], home
    )


def _find_cwd(sample: Sample) -> str:
    story = os.path.join(CORPUS, sample.name, "STORY.toml")
    if not os.path.exists(story):
        return "/home/user/project"
    with open(story, "rb") as file:
        return str(tomllib.load(file)["cwd"])


def measure(tool: Tool, names: list[str]) -> tuple[list[Score], int]:
    """The scores of what `tool` wrote, and for how many transcripts it wrote nothing."""
    scores: list[Score] = []
    nothing = 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            sample = lay_out(name, os.path.join(folder, "laid"))
            home = os.path.join(folder, "home")
            os.makedirs(home)
            text = tool.write(sample, home)
        nothing += not text
        scores.append(score_text(text, sample.planting))
    return scores, nothing


def main() -> None:
    """Write one table for each group of transcripts."""
    for group in ("told", "hard", "unseen"):
        names = list_names(group)
        head = " | ".join(("tool", "nothing written", *KINDS, "secrets", "characters"))
        sys.stdout.write(f"\n{group}: {len(names)} transcripts\n\n| {head} |\n")
        for tool in find_tools():
            scores, nothing = measure(tool, names)
            kinds = " | ".join(_count(scores, kind) for kind in KINDS)
            leaked = f"{sum(len(one.leaked) for one in scores)}/{sum(one.secrets for one in scores)}"
            sizes = [one.characters for one in scores if one.characters] or [0]
            sys.stdout.write(
                f"| {tool.name} | {nothing} | {kinds} | {leaked} | {min(sizes)} to {max(sizes)} |\n"
            )
            sys.stdout.flush()


def _count(scores: list[Score], kind: FactKind) -> str:
    found, planted = (sum(counts.get(kind, 0) for counts in part) for part in _split(scores))
    return f"{found}/{planted}"


def _split(scores: list[Score]) -> tuple[list[dict[FactKind, int]], list[dict[FactKind, int]]]:
    return [one.found for one in scores], [one.planted for one in scores]


if __name__ == "__main__":
    main()
