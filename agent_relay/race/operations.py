"""The operations on races that the daemon serves to clients."""

import asyncio
from collections.abc import Mapping

from agent_relay.domain.protocol import operations as op
from agent_relay.domain.protocol.requests import Handler, Peer
from agent_relay.race.registry import RaceRegistry, RaceRequest

_TEST_LIMIT_S = 600


def build_race_handlers(racing: RaceRegistry) -> Mapping[str, Handler]:
    """Return the handlers by the names of their operations."""

    async def begin(asked: op.RaceBeginFields, _peer: Peer) -> Mapping[str, object]:
        wish = RaceRequest(
            agents=asked.agents,
            task=asked.task,
            cwd=asked.cwd,
            environ=asked.env,
            test=asked.test,
            test_limit_s=asked.test_limit_s or _TEST_LIMIT_S,
            max_time_s=asked.max_time_s,
            applies=asked.apply,
        )
        return {"race": (await racing.begin(wish)).id}

    async def resume(asked: op.RaceResumeFields, _peer: Peer) -> Mapping[str, object]:
        return {"race": (await racing.resume(asked.race, asked.env)).id}

    async def stop(asked: op.RaceFields, _peer: Peer) -> Mapping[str, object]:
        return {"race": (await racing.stop(asked.race)).id}

    async def apply(asked: op.RaceApplyFields, _peer: Peer) -> Mapping[str, object]:
        race, files = await racing.apply(asked.race, asked.runner)
        runner = race.get_runner(race.applying)
        already = not race.failure and not files and runner.files > 0
        return {"files": files, "runner": runner.name, "why": race.failure, "already": already}

    async def clean(asked: op.RaceFields, _peer: Peer) -> Mapping[str, object]:
        return {"said": await racing.clean(asked.race)}

    async def show(asked: op.RaceFields, _peer: Peer) -> Mapping[str, object]:
        return await asyncio.to_thread(racing.show, asked.race)

    return dict(
        (
            op.RACE_BEGIN.performed_by(begin),
            op.RACE_RESUME.performed_by(resume),
            op.RACE_STOP.performed_by(stop),
            op.RACE_APPLY.performed_by(apply),
            op.RACE_CLEAN.performed_by(clean),
            op.RACE_SHOW.performed_by(show),
        )
    )
