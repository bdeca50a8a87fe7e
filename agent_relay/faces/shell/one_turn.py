"""One turn as a thread follows it: asked of the agent, or joined where it was begun before, to its end."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from agent_relay.client.turn_loop import Asking, TurnLoop
from agent_relay.faces.rendering.turn_view import TurnView
from agent_relay.faces.shell.aside import tell_loop
from agent_relay.faces.shell.conversation import Conversation
from agent_relay.faces.shell.typed_ahead import Message

Event = Mapping[str, object]

_HEARD = frozenset(("turn", "leg", "usage", "handoff", "end"))
"""The events that change what stands around the prompt."""


def build_turn(
    conversation: Conversation,
    connect: Callable[[], Asking],
    view: TurnView,
    *,
    message: Message,
    told: Mapping[str, object] | None,
    hear: Callable[[Event], None],
    is_shown: bool = False,
) -> Callable[[], Event]:
    """What follows the turn of `message`, or from `told` on the one under way; its last event, for a thread.

    `hear` is called by the loop with what changes the conversation. With `is_shown` the message stands on the
    terminal already.
    """
    loop = asyncio.get_running_loop()

    def show(event: Event) -> None:
        if event.get("type") in _HEARD:
            tell_loop(loop, partial(hear, event))
        # A terminal that is gone ends the shell, not the turn.
        with suppress(OSError):
            view.show(event)

    follower = TurnLoop(connect, show, heeds=())
    wish = conversation.build_wish(message.text) | {"message": message.id}
    agent, session = conversation.agent, conversation.session

    def work() -> Event:
        try:
            if told is not None:
                return follower.rejoin(session, told)
            if not is_shown:
                with suppress(OSError):
                    view.begin(agent, message.text)
            return follower.run(wish)
        finally:
            with suppress(OSError):
                view.end()

    return work
