"""Secrets of every kind, planted wherever a session touches them: none reaches disk, log, packet or `ps`."""

import json
import os

import pytest

from agent_relay.domain.session import Session
from tests.redact.planted import TOKENS, Planted
from tests.support.handoffs import LIMIT, PICKED_UP, Work, open_work, write_screenplays
from tests.support.ordinary_places import make_repository, write
from tests.support.relay_world import RelayWorld, relay_world
from tests.support.secret_hunt import Hunt, hunting, plant_everywhere

PLACES = ("prompt", "answer", "output", "diff", "dotenv", "environment", "task", "focus")
BY_NAME = {
    "DB_PASSWORD": "trailblazer-of-hunters-2",
    "SMTP_PASS": "correct.horse!battery",
    "DATABASE_URL": "postgres://app:Zw4rtkopje-99@db.internal/prod",
}
SPOKEN = "trailblazer-of-hunters-2 correct.horse!battery Zw4rtkopje-99"
SHOW = "python3 test_it.py; git diff; cat .env; env; echo failed; exit 3"


def join(planted: list[Planted]) -> str:
    """The secrets of one place, one after the other, with words between."""
    return " ".join(f"use {one.secret} for it." for one in planted)


def plant(world: RelayWorld, planted: dict[str, list[Planted]]) -> None:
    """The project, its environment and what the first agent will say and run."""
    with open(f"{world.folders.config}/config.toml", "a", encoding="utf-8") as file:
        # Nothing may be missing from a packet only because it was too long.
        file.writelines(f"[agents.{name}]\nbudget_tokens = 200000\n" for name in ("demo", "understudy"))
    make_repository(world.project)
    write(f"{world.project}/notes.txt", "".join(f"{one.secret}\n" for one in planted["diff"]))
    settings = enumerate(one.secret for one in planted["dotenv"])
    write(f"{world.project}/.env", "".join(f"X{number}={secret}\n" for number, secret in settings))
    write(f"{world.project}/test_it.py", "".join(f"print('{one.secret}')\n" for one in planted["output"]))
    first = [
        {"plan": [{"text": join(planted["answer"]), "status": "in_progress"}]},
        {"say": f"I decided on {join(planted['answer'])} because of {SPOKEN}"},
        {"run": f"sh -c '{SHOW}'"},
        {"run": f"pytest -q; {SHOW}"},
    ]
    scenes = [
        {"when": "for the task", "do": first},
        {"when": "handoff-context", "do": [{"say": PICKED_UP}]},
        {"do": [{"say": f"so {SPOKEN}"}, LIMIT]},
    ]
    world.environ |= write_screenplays(f"{world.folder}/plays", demo=scenes)
    world.environ |= BY_NAME | {f"X{at}": one.secret for at, one in enumerate(planted["environment"])}


def work_through(world: RelayWorld, planted: dict[str, list[Planted]]) -> tuple[Work, list[str]]:
    """A task, a limit, a handoff there and one back; the session, and what both successors were given."""

    def was_told(session: Session) -> bool:
        return session.leg is not None and session.leg.was_busy

    task = f"for the task {join(planted['task'])} {SPOKEN}"
    work = open_work(world, world.project, world.project, task=task)
    work.wait_for(was_told, "the task was delivered")
    work.type(f"first {join(planted['prompt'])}")
    work.wait_for_successor()
    given = [str(row["text"]) for row in work.native_rows() if row["type"] == "prompt"]
    focus = f"{join(planted['focus'])} {SPOKEN}"
    world.ask("use", session=work.id, agent="demo", focus=focus, yes=True)
    work.wait_for_successor("demo")
    given += [str(row["text"]) for row in work.native_rows() if row["type"] == "brief"]
    return work, given


@pytest.mark.size("test")
def test_planted_secrets_are_nowhere_but_with_the_agents_they_were_told_to() -> None:
    """A packet may be shared, a log pasted into an issue, `ps` read by anybody on the machine."""
    planted = plant_everywhere(*PLACES)
    named = [Planted(name, "by name", value, value) for name, value in BY_NAME.items()]
    hunt = Hunt([*(one for place in planted.values() for one in place), *named])
    with relay_world() as world:
        plant(world, planted)
        home, ours = world.environ["AGENT_RELAY_HOME"], f"{world.project}/.agent-relay"
        with hunting(hunt, world, home, ours):
            world.start_daemon()
            work, given = work_through(world, planted)
        hunt.look_below(home)
        hunt.look_below(ours)
        for text in given:
            hunt.look(text, "what a successor was given")
        assert sorted(hunt.found) == []
        assert hunt.texts > 20
        assert len(given) == 2
        packets = sorted(name for name in os.listdir(f"{work.folder}/resume") if name.endswith(".json"))
        assert packets == [
            ".0001-understudy.published.json", ".0002-demo.published.json",
            "0001-understudy.json", "0002-demo.json",
        ]  # fmt: skip
        with open(f"{work.folder}/resume/{packets[2]}", encoding="utf-8") as file:
            removed = json.load(file)["redactions"]
        assert sum(one["count"] for one in removed) > 5 * len(TOKENS)
        assert len(removed) > 40
        work.stop()
