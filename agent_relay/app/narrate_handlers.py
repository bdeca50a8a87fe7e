"""The operations by which faces ask for a handoff document, and cancel that, as the daemon serves them."""

from collections.abc import Mapping

from agent_relay.app.legs import Luggage
from agent_relay.app.narrating import Narrating
from agent_relay.app.sessions import Sessions
from agent_relay.domain.serving import Handler, Peer, Request


def build_narrate_handlers(sessions: Sessions, narrating: Narrating) -> Mapping[str, Handler]:
    """The operations by name."""

    async def narrate(request: Request, _peer: Peer) -> Mapping[str, object]:
        """What came of it: `outcome`, the `message` for the user, and the document as `text`."""
        session = request.text("session")
        if "env" in request.fields:
            # Between two headless turns nobody has it at work, and nothing holds the user's environment.
            await sessions.take_up(session, Luggage(request.mapping("env")))
        room = sessions.get(session)
        leg = room.session.leg
        luggage = room.stage.get_luggage(leg.id if leg is not None else "")
        told = await narrating.narrate(room.session, luggage, request.text("focus", ""))
        return {"outcome": told.kind.value, "message": told.message, "text": told.text}

    async def cancel(request: Request, _peer: Peer) -> Mapping[str, object]:
        """Whether a document was being written; it is no more."""
        return {"cancelled": narrating.cancel(sessions.get(request.text("session")).session.id)}

    return {"narrate": narrate, "narrate.cancel": cancel}
