import base64
import json
import os
import sys
from datetime import UTC, datetime

import pytest

from agent_relay.agents.source_paths import LegPlace, expand_path, expand_text
from tests.support.provider.steps import Step, refuse, say
from tests.support.real import World
from tests.support.real_launch import Leg, deliver, start, wait_ready
from tests.support.real_seeds import write_json

FETCH = "import sys,urllib.request as u;r=u.Request(sys.argv[1],headers={'Authorization':sys.argv[2]});"
FETCH += "sys.stdout.write(u.urlopen(r,timeout=60).read().decode())"


def reach_limit(world: World, agent: str, limit: Step) -> Leg:
    """A leg that answered once and then met `limit`."""
    world.play(agent, say("The first answer."), limit)
    leg = start(world, agent)
    wait_ready(leg)
    deliver(leg, "do the work")
    leg.terminal.wait_for("The first answer")
    leg.terminal.wait_quiet()
    deliver(leg, "go on")
    leg.terminal.wait_until(lambda: len(world.requests(agent)) >= 2, "the second request")
    return leg


def find_evidence(world: World, leg: Leg, role: str) -> str:
    """What stands in the file the adapter names for `role`; empty where there is none yet."""
    values = leg.values | {"pid": str(leg.terminal.pid)}
    place = LegPlace("leg", datetime.now(UTC), values, world.env())
    spec = next(spec for spec in leg.adapter.sources if spec.role == role)
    pattern = expand_path(spec.path, place)
    assert pattern is not None
    paths = list(pattern.find())
    assert len(paths) <= 1
    if not paths:
        return ""
    with open(paths[0], encoding="utf-8", errors="replace") as file:
        return file.read()


def wait_evidence(world: World, leg: Leg, role: str, *words: str) -> None:
    """The source `role` says all of `words`, sooner or later."""
    leg.terminal.wait_until(
        lambda: all(word in find_evidence(world, leg, role) for word in words),
        f"{words} in {role}: {find_evidence(world, leg, role)[-600:]}",
    )


@pytest.mark.size("test")
def test_claude_says_its_limit_in_hook_transcript_state_file_and_status_line(world: World) -> None:
    """Four places the agent cannot write to by talking; the status line alone knows the exact reset."""
    leg = reach_limit(world, "claude", refuse("claude-limit"))
    limit = "You've hit your session limit"
    wait_evidence(world, leg, "hook", '"hook_event_name":"StopFailure"', '"error":"rate_limit"', limit)
    wait_evidence(world, leg, "hook", '"hook_event_name":"SessionStart"', '"hook_event_name":"Stop"')
    wait_evidence(world, leg, "transcript", '"isApiErrorMessage":true', limit)
    wait_evidence(world, leg, "state-file", '"status":"waiting"')
    leg.terminal.send("\x1b")
    wait_evidence(world, leg, "status-line", '"rate_limits":{"five_hour":{"used_percentage":')


@pytest.mark.size("test")
def test_codex_says_its_limit_in_the_rollout_of_this_folder(world: World) -> None:
    """The rollout is the only structured place: no hook of codex fires at a limit."""
    leg = reach_limit(world, "codex", refuse("codex-limit"))
    wait_evidence(world, leg, "transcript", '"codex_error_info":"usage_limit_exceeded"', '"resets_at":')
    assert (
        json.loads(find_evidence(world, leg, "transcript").split("\n")[0])["payload"]["cwd"] == world.project
    )


@pytest.mark.size("test")
def test_gemini_says_its_daily_limit_in_telemetry_while_a_dialog_waits(world: World) -> None:
    """Nothing of this limit stands in the transcript or the debug log until somebody answers the dialog."""
    leg = reach_limit(world, "gemini", refuse("gemini-quota"))
    leg.terminal.wait_for("Usage limit reached for")
    wait_evidence(world, leg, "telemetry", "gemini_cli.api_error", "GenerateRequestsPerDay", '"role": "main"')
    wait_evidence(world, leg, "transcript", "go on")


def test_gemini_says_its_silent_limit_in_the_debug_log_at_once(google_world: World) -> None:
    """The screen shows "Thinking" for seven hours."""
    leg = reach_limit(google_world, "gemini", refuse("gemini-exhausted"))
    wait_evidence(google_world, leg, "log", "Your quota will reset after 7h23m19s", "Retrying after ")
    wait_evidence(google_world, leg, "telemetry", "gemini_cli.api_error", "quotaResetTimeStamp")
    leg.terminal.wait_for("Thinking")
    assert "reset after" not in leg.terminal.screen


@pytest.mark.size("test")
def test_opencode_says_its_silent_limit_to_those_with_the_password(world: World) -> None:
    """The retry an hour away is an event and a status; its port answers nobody else."""
    leg = reach_limit(world, "opencode", refuse("openai-busy", retry_after_s=3600))
    leg.terminal.wait_for("retrying")
    spec = next(spec for spec in leg.adapter.sources if spec.role == "event")
    place = LegPlace("leg", datetime.now(UTC), leg.values)
    url = expand_text(spec.snapshots[0].url, place)
    assert url is not None
    pair = f"{spec.user}:{expand_text(spec.password, place)}"
    fetch = [sys.executable, "-c", FETCH, url]
    told = world.run([*fetch, "Basic " + base64.b64encode(pair.encode()).decode()])
    status = next(iter(json.loads(told.stdout).values()))
    assert status["type"] == "retry"
    assert "Rate limit reached" in status["message"]
    refused = world.run([*fetch, "Basic bm9ib2R5Og=="])
    assert "401" in refused.stderr


def test_claudes_own_status_line_is_still_shown(world: World) -> None:
    """A status line the user made is wrapped, not replaced: same input, same words."""
    command = 'sed -e "s/.*\\"version\\":\\"\\([0-9.]*\\)\\".*/MINE \\1/"'
    write_json(f"{world.home}/.claude/settings.json", {"statusLine": {"type": "command", "command": command}})
    leg = start(world, "claude")
    leg.terminal.wait_for(r"MINE 2\.1\.197")
    wait_evidence(world, leg, "status-line", '"version":"2.1.197"')


def test_the_users_own_hooks_run_beside_ours(world: World) -> None:
    """Settings given at launch are added to the user's files, which stay as they are."""
    mark = f"{world.root}/own-hook"
    hooks = {"SessionStart": [{"hooks": [{"type": "command", "command": f"touch {mark}"}]}]}
    write_json(f"{world.home}/.claude/settings.json", {"hooks": hooks})
    leg = start(world, "claude")
    wait_ready(leg)
    wait_evidence(world, leg, "hook", '"hook_event_name":"SessionStart"')
    leg.terminal.wait_until(lambda: os.path.exists(mark), "the user's own hook")
