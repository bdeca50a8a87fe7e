"""Runs a race's test in one runner's worktree: with a limit, its output kept, none of its processes left."""

import os
import time
from collections.abc import Mapping

from agent_relay.app.finishing import finish
from agent_relay.app.race.ground import Place
from agent_relay.domain.errors import RelayError
from agent_relay.domain.race import Race, Runner
from agent_relay.logic.redact.rule import PLACEHOLDER
from agent_relay.system.headless import run_headless

_SHELL = "/bin/sh"
_NEVER_RAN = -1


async def run_test(
    place: Place, race: Race, runner: Runner, environ: Mapping[str, str], command: str
) -> tuple[int, int, str]:
    """The test's exit status, its time in milliseconds, and why it did not end by itself, empty where it did.

    Raises RelayError where the race's own folder cannot be written.
    """
    # A daemon that was killed may have left the same test running.
    await finish(place.end_tests, runner)
    folder = await finish(place.clear_test, runner.number)
    cwd = os.path.join(runner.tree, race.below)
    if not place.has_tree(runner):
        return _NEVER_RAN, 0, "not run: its worktree was removed"
    if PLACEHOLDER in command:
        # Another daemon began the race: what the journal knows of the command is not what the user wrote.
        return _NEVER_RAN, 0, "not run: the secret in its command is not kept on disk"
    began = time.monotonic()
    try:
        ran = await run_headless(
            [_SHELL, "-c", command],
            env=place.mark(environ, runner),
            cwd=cwd,
            folder=folder,
            text="",
            limit_s=race.test_limit_s,
        )
        status, why = ran.status, ""
    except RelayError as error:
        status, why = _NEVER_RAN, error.sentence.replace("no answer came", "not done")
    finally:
        await finish(place.end_tests, runner)
    return status, int((time.monotonic() - began) * 1000), why
