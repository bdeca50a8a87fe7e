"""The operations of a person in front of a session in which every agent rests."""

from collections.abc import Mapping

from agent_relay.app.room import Room
from agent_relay.app.sessions import Sessions
from agent_relay.domain.rest_effect import GoOnAsked, ResumeWished
from agent_relay.domain.serving import Handler, Peer, Request
from agent_relay.domain.session import State
from agent_relay.logic.rest_view import build_rest_view


async def describe_rest(room: Room) -> Mapping[str, object]:
    """What is to be shown of the rest as the answer's field `rest`; nothing where nobody rests."""
    session = room.session
    if session.state is not State.RESTING and not session.offer:
        return {}
    view = build_rest_view(session, await room.stage.build_world(session))
    return {"rest": view.render()} if view is not None else {}


def build_rest_handlers(sessions: Sessions) -> Mapping[str, Handler]:
    """The operations by name."""

    async def agree(request: Request, _peer: Peer) -> Mapping[str, object]:
        """Work may go on by itself when this rest is over; with `agreed` false it may not."""
        room = await sessions.find(request.text("session"))
        wish = ResumeWished(request.fields.get("agreed") is not False)
        session = await room.host.ask(wish)
        return {"session": session.id, "agreed": session.agreed}

    async def go_on(request: Request, _peer: Peer) -> Mapping[str, object]:
        """Work goes on now, with whoever can be had again."""
        room = await sessions.find(request.text("session"))
        session = await room.host.ask(GoOnAsked())
        return {"session": session.id, "state": session.state.value}

    return {"rest.agree": agree, "rest.go": go_on}
