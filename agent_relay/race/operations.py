"""The operations on races that the daemon serves to clients."""

import asyncio
from collections.abc import Mapping

from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.protocol.requests import Handler, Peer, Request
from agent_relay.race.registry import RaceRegistry, RaceRequest

_LONGEST_S = 7 * 24 * 3600
_TEST_LIMIT_S = 600


def build_race_handlers(racing: RaceRegistry) -> Mapping[str, Handler]:
    """Return the operations by name."""

    async def begin(request: Request, _peer: Peer) -> Mapping[str, object]:
        wish = RaceRequest(
            agents=request.texts("agents"),
            task=request.text("task"),
            cwd=request.text("cwd"),
            environ=request.mapping("env"),
            test=request.text("test", ""),
            test_limit_s=_seconds(request, "test_limit_s", _TEST_LIMIT_S) or _TEST_LIMIT_S,
            max_time_s=_seconds(request, "max_time_s", 0),
            applies=request.flag("apply"),
        )
        return {"race": (await racing.begin(wish)).id}

    async def resume(request: Request, _peer: Peer) -> Mapping[str, object]:
        return {"race": (await racing.resume(request.text("race"), request.mapping("env"))).id}

    async def stop(request: Request, _peer: Peer) -> Mapping[str, object]:
        return {"race": (await racing.stop(request.text("race"))).id}

    async def apply(request: Request, _peer: Peer) -> Mapping[str, object]:
        race, files = await racing.apply(request.text("race"), request.number("runner", 0))
        runner = race.get_runner(race.applying)
        already = not race.failure and not files and runner.files > 0
        return {"files": files, "runner": runner.name, "why": race.failure, "already": already}

    async def clean(request: Request, _peer: Peer) -> Mapping[str, object]:
        return {"said": await racing.clean(request.text("race"))}

    async def show(request: Request, _peer: Peer) -> Mapping[str, object]:
        return await asyncio.to_thread(racing.show, request.text("race"))

    return {
        "race.begin": begin,
        "race.resume": resume,
        "race.stop": stop,
        "race.apply": apply,
        "race.clean": clean,
        "race.show": show,
    }


def _seconds(request: Request, name: str, default: int) -> int:
    found = request.number(name, default)
    if not 0 <= found <= _LONGEST_S:
        raise WrongUseError(f"{request.op} needs {name} between 0 and {_LONGEST_S} seconds")
    return found
