"""Which sessions belong together: those that went on in one another, ours and the agents' own."""

from collections.abc import Sequence

from agent_relay.logic.metrics.legs import SessionWork
from agent_relay.logic.metrics.pool import Native


def find_chain(
    works: Sequence[SessionWork],
    natives: Sequence[Native],
    begin_works: Sequence[SessionWork],
    begin_natives: Sequence[Native],
) -> tuple[list[SessionWork], list[Native]]:
    """The sessions connected with those to begin from, by legs in one native session or by forks."""
    ours = {work.session for work in begin_works}
    own = {native.session for native in begin_natives}
    size = -1
    while size != len(ours) + len(own):
        size = len(ours) + len(own)
        for work in works:
            named = {native for leg in work.legs for native in leg.natives}
            if work.session in ours or named & own:
                ours.add(work.session)
                own |= named
        for native in natives:
            if native.session in own and native.parent:
                own.add(native.parent)
            elif native.parent in own:
                own.add(native.session)
    return (
        [work for work in works if work.session in ours],
        [native for native in natives if native.session in own],
    )
