import os
from collections.abc import Iterator

from agent_relay.detect.screen_state import read_input, read_state
from agent_relay.domain.screen import Screen
from agent_relay.sources.recording import read_recording
from agent_relay.sources.replay import FrameCutter, capture
from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.library import find_library
from agent_relay.terminal.emulation.output_scanner import AgentStateScanner
from tests.support.built_in import load_agent_rules

HERE = os.path.dirname(__file__)


def iter_screens(name: str) -> Iterator[Screen]:
    library = find_library()
    assert library is not None
    recording = read_recording(os.path.join(HERE, "recordings", name + ".raw.gz"))
    emulator, scanner = Emulator(library, recording.cols, recording.rows), AgentStateScanner()
    cutter = FrameCutter(recording.timing.settled)
    for piece in [*cutter.feed(recording.data), *cutter.flush()]:
        emulator.feed(piece)
        scanner.feed(piece)
        yield capture(emulator, scanner)


def list_states(name: str) -> list[str]:
    rules = load_agent_rules(name.partition("/")[0])
    states: list[str] = []
    for screen in iter_screens(name):
        state = f"{read_state(rules, screen)} {read_input(rules, screen)}"
        if not states or states[-1] != state:
            states.append(state)
    return states


BEGUN = "unknown hidden, asking hidden, unknown hidden, ready empty, ready typed, busy empty, "
STATES = {
    "claude/claude-2.1.197-session-limit-120x40": (
        "unknown hidden, ready empty, busy empty, ready empty, asking hidden, ready empty, ready "
        "typed, unknown typed"
    ),
    "claude/claude-2.1.197-permission-prompt-120x40": (
        "unknown hidden, ready empty, busy empty, asking hidden, busy empty, ready empty, ready "
        "typed, unknown typed"
    ),
    "claude/claude-2.1.330-session-limit-continue-120x40": (
        f"{BEGUN}ready empty, busy empty, ready empty, ready typed, unknown hidden"
    ),
    "claude/claude-2.1.330-session-limit-subagent-120x40": f"{BEGUN}ready empty, unknown hidden",
    "claude/claude-2.1.330-session-limit-options-120x40": (
        f"{BEGUN}ready empty, ready typed, asking hidden, unknown hidden"
    ),
    "claude/claude-2.1.330-weekly-limit-80x24": f"{BEGUN}asking hidden, unknown hidden",
    "claude/claude-2.1.330-weekly-limit-wait-80x24": f"{BEGUN}asking hidden, ready empty, unknown hidden",
    "claude/claude-2.1.330-api429-exhausted-120x40": f"{BEGUN}ready empty, unknown hidden",
    "claude/claude-2.1.330-auth-401-exhausted-120x40": f"{BEGUN}ready empty, unknown hidden",
    "claude/claude-2.1.330-permission-prompt-120x40": (
        f"{BEGUN}asking hidden, ready empty, busy empty, ready empty, ready typed, unknown hidden"
    ),
    "codex/codex-0.169.0-usage-limit-120x40": (
        "unknown hidden, ready empty, busy empty, asking typed, ready empty, ready typed, unknown hidden"
    ),
    "codex/codex-0.169.0-permission-prompt-120x40": (
        "unknown hidden, ready empty, busy empty, asking typed, busy empty, ready empty, ready typed, "
        "unknown hidden"
    ),
    "gemini/gemini-0.61.0-daily-quota-120x40": (
        "ready empty, ready typed, ready empty, busy empty, asking typed"
    ),
    "gemini/gemini-0.61.0-onboarding-virgin-home-120x40": "starting hidden, asking hidden",
    "gemini/gemini-0.61.0-screen-reader-120x40": (
        "ready empty, ready typed, ready empty, busy empty, ready empty, ready typed, ready empty, "
        "busy empty, asking hidden"
    ),
    "opencode/opencode-1.18.33-approval-120x40": (
        "unknown hidden, ready empty, ready typed, ready empty, unknown hidden, busy empty, asking "
        "hidden, busy empty, asking hidden, busy empty, ready empty, unknown hidden"
    ),
    "opencode/opencode-1.18.33-text-120x40": (
        "unknown hidden, ready empty, ready typed, ready empty, busy empty, ready empty, unknown hidden"
    ),
}


def test_the_states_of_a_real_session_are_read_from_its_screens() -> None:
    """Dialogs are asking, a half-typed line is typed: relay types into neither.

    A countdown to a reset is no dialog, and the agent's own hint in an empty line nobody typed.
    """
    assert {name: ", ".join(list_states(name)) for name in STATES} == STATES
