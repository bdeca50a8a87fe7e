"""A text that takes for ever costs the packet what stands in it, not the handoff and not the daemon."""

import re

import pytest

from agent_relay.domain.events.work import PacketPublished
from agent_relay.domain.session import Session, Step
from tests.support.at_work import has_taken_over, working_world

pytestmark = pytest.mark.size("every")

# A text of n characters can be cut into parts in 2^n ways, and each is tried. No run of one thing shows it,
# so that it is not refused as slow: it stands for whatever nobody saw coming.
_FOR_EVER = "[g][h](?:[A-Za-z0-9_]+)+!"
_TOKEN = "ghp_" + "abcdefghijklmnopqrstuvwxyzabcdefgh9X"


def _is_building(found: Session) -> bool:
    return found.handoff is not None and found.handoff.step is Step.STOPPED


def test_a_text_that_takes_for_ever_holds_neither_the_daemon_nor_the_handoff() -> None:
    """It answers, hears SIGTERM, and the next one hands over what can be had, and says what is missing."""
    with working_world() as world:
        world.configure(f"[redaction]\nallow_patterns = ['{_FOR_EVER}']\n")
        session = world.begin_worked(f"paint the shed {_TOKEN}")
        world.say(session, "out")
        world.wait_for(session, _is_building, "the packet is being built")
        world.connect().close()
        daemon = world.daemons[-1]
        daemon.terminate()
        assert daemon.wait(timeout=30) == 0
        assert _is_building(world.session(session))
        world.start_daemon()
        found = world.wait_for(session, has_taken_over, "the understudy took over", limit_s=240)
        told = [event.body for event in world.events(session) if isinstance(event.body, PacketPublished)]
        assert len(told) == 1
        # By its processor time, or by the clock where other programs have the processor.
        assert re.fullmatch(
            r"what demo recorded is not in it: it took more than (?:20 s of processor time|60 s)",
            told[0].lacks,
        )
        with open(f"{world.project}/.agent-relay/sessions/{session}/{found.done[0].text_path}") as text:
            assert "what demo recorded is not in it" in text.read()
