"""Operations whose modules are loaded when one of them is first asked for.

A person waits for the daemon's start, and what only a run, a chat or a race needs is a third of its modules.
"""

from collections.abc import Callable, Mapping

from agent_relay.domain.serving import Handler, Peer, Request


def build_late_handlers(
    names: tuple[str, ...], build: Callable[[], Mapping[str, Handler]]
) -> Mapping[str, Handler]:
    """Return handlers of the operations `names`, which `build` imports and makes at the first request."""
    built: dict[str, Handler] = {}

    async def handle(request: Request, peer: Peer) -> Mapping[str, object]:
        if not built:
            built.update(build())
        return await built[request.op](request, peer)

    return dict.fromkeys(names, handle)
