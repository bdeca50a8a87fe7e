"""How many may look on at once through the page, also where all of them ask in one moment."""

import asyncio
from collections import Counter

from starlette.types import Message

from agent_relay.faces.watch._watch_loop import LatestView
from agent_relay.faces.watch._web import ConnectionLimit, build_app


async def _ask_at_once(count: int) -> tuple[Counter[int], Counter[int]]:
    """The statuses of so many who ask at once, and of as many after those have gone."""
    app = build_app(LatestView(), "token", 80, ConnectionLimit())
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/events",
        "headers": [(b"host", b"localhost:80"), (b"authorization", b"Bearer token")],
        "query_string": b"",
    }

    async def ask_all() -> Counter[int]:
        told: asyncio.Queue[int] = asyncio.Queue()

        async def send(message: Message) -> None:
            await asyncio.sleep(0)
            if message["type"] == "http.response.start":
                told.put_nowait(int(message["status"]))

        async def receive() -> Message:
            await asyncio.Event().wait()
            return {"type": "http.disconnect"}

        asking = [asyncio.create_task(app(dict(scope), receive, send)) for _ in range(count)]
        statuses = Counter([await told.get() for _ in asking])
        for one in asking:
            one.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        return statuses

    return await ask_all(), await ask_all()


def test_no_more_look_on_than_may_also_where_all_ask_at_once() -> None:
    """Each is written everything that changes: hundreds of pages left open would cost a core."""
    at_first, again = asyncio.run(asyncio.wait_for(_ask_at_once(60), 30))
    assert (at_first, again) == ({200: 16, 503: 44}, {200: 16, 503: 44})
