"""Where output enters the alternate screen."""

import pytest

from agent_relay.terminal.emulation.output_scanner import cut_begun, find_switches, may_enter


@pytest.mark.parametrize("switch", [b"\x1b[?1049h", b"\x1b[?1047h", b"\x1b[?47h"])
def test_every_switch_is_found_wherever_it_stands(switch: bytes) -> None:
    """What lies beneath is lost for the next repaint when one is missed."""
    assert list(find_switches(switch)) == [(0, len(switch))]
    twice = b"a" + switch + b"bc" + switch
    assert list(find_switches(twice)) == [(1, 1 + len(switch)), (3 + len(switch), len(twice))]


@pytest.mark.parametrize(
    "text", [b"?1049h", b"[?1049h", b"x?47h", b"\x1b[?1049l", b"\x1b[?25h", b"plain", b""]
)
def test_text_that_only_looks_like_one_is_none(text: bytes) -> None:
    """A file shown by the agent may hold the letters; without the escape they are text."""
    assert list(find_switches(text)) == []


def test_what_may_not_enter_has_no_switch() -> None:
    """The test that every read passes is allowed to be wrong in one direction only."""
    assert not may_enter(b"\x1b[?25h plain text")
    assert may_enter(b"text \x1b[?1047h")


def test_a_switch_cut_off_by_the_end_waits_for_its_rest() -> None:
    """Bytes arrive cut anywhere; half a switch is not yet one."""
    for switch in (b"\x1b[?1049h", b"\x1b[?1047h", b"\x1b[?47h"):
        for end in range(1, len(switch)):
            assert cut_begun(b"text" + switch[:end]) == (b"text", switch[:end])
    assert cut_begun(b"text\x1b[?25") == (b"text\x1b[?25", b"")
    assert cut_begun(b"text") == (b"text", b"")
