"""A hint is typed where it is read: each place has its own spelling of the same command."""

import pytest

from agent_relay.domain.text.hints import render_at_key, render_in_shell, render_over_screen

OWN, OTHER = "01K0000000000000000000000A", "01K0000000000000000000000B"
SHELL = {"attach", "handoff", "limits", "packet", "relay", "resume", "status", "use"}
BACK = "bob is available again. To switch back: agent-relay bob, or press the relay key and type /use bob"


@pytest.mark.parametrize(
    ("text", "key", "shell"),
    [
        ("See: agent-relay status", "See: /status", "See: /status"),
        ("See: agent-relay daemon logs", "See (in another terminal): agent-relay daemon logs",
         "See: !agent-relay daemon logs"),
        ("Sooner: agent-relay relay", "Sooner: /relay", "Sooner: /relay"),
        (f"Show: agent-relay packet show {OTHER}", f"Show: /packet show {OTHER}",
         f"Show: /packet show {OTHER}"),
        ("Again: agent-relay handoff retry H1 --yes", "Again: /handoff retry H1 --yes",
         "Again: /handoff retry H1 --yes"),
        (f"End it: agent-relay stop {OWN}", "End it: /stop", f"End it: !agent-relay stop {OWN}"),
        (f"End it: agent-relay stop {OTHER}", f"End it (in another terminal): agent-relay stop {OTHER}",
         f"End it: !agent-relay stop {OTHER}"),
        (BACK, "bob is available again. To switch back: /use bob",
         "bob is available again. To switch back: /use bob"),
        (f"Give it: agent-relay bob --session {OWN}", "Give it: /use bob", "Give it: /use bob"),
        (f"Give it: agent-relay agent demo --session {OWN}", "Give it: /use demo", "Give it: /use demo"),
        (f"Give it: agent-relay bob --session {OTHER}",
         f"Give it (in another terminal): agent-relay bob --session {OTHER}",
         f"Give it: !agent-relay bob --session {OTHER}"),
        (f"agent-relay bob --session {OWN} --yes hands over all the same",
         "/use bob --yes hands over all the same",
         f"!agent-relay bob --session {OWN} --yes hands over all the same"),
        ("Make another one: agent-relay bob --no-launch", "Make another one: /use bob --no-launch",
         "Make another one: !agent-relay bob --no-launch"),
        ("Start: agent-relay <agent>", "Start: /use AGENT", "Start: /use AGENT"),
        ("When it suits you: press the relay key and type /handoff", "When it suits you: /handoff",
         "When it suits you: /handoff"),
    ],
)  # fmt: skip
def test_a_command_is_spelled_as_it_is_typed_there(text: str, key: str, shell: str) -> None:
    """`agent-relay codex` behind the relay key is a prompt for the agent, and in the shell a message."""
    assert render_at_key(text, OWN) == key
    assert render_in_shell(text, OWN, SHELL) == shell


@pytest.mark.parametrize(
    "text",
    [
        "agent-relay made a mistake; a crash report was written",
        "it cannot go on: agent-relay is no longer installed in /opt",
        "If it was moved or upgraded, run agent-relay again; else install it again",
        "the agent-relay of another container on this machine",
        "/home/ada/agent-relay/notes",
        "nothing to type",
        "",
    ],
)
def test_a_sentence_about_agent_relay_names_no_command(text: str) -> None:
    """A sentence that was turned into a command says nothing any more."""
    assert render_at_key(text, OWN) == text
    assert render_in_shell(text, OWN, SHELL) == text


def test_what_a_daemon_says_to_a_terminal_is_about_the_session_on_it() -> None:
    """The line over an agent's screen names no other session."""
    text = f"Give it: agent-relay bob --session {OTHER}"
    assert render_over_screen(text) == "Give it: press the relay key and type /use bob"


def test_over_an_agents_screen_the_relay_key_is_named() -> None:
    """There a slash command would be typed to the agent."""
    assert render_over_screen(BACK) == (
        "bob is available again. To switch back: press the relay key and type /use bob"
    )
    assert render_over_screen("Sooner: agent-relay relay") == "Sooner: press the relay key and type /relay"
    full = "When it suits you: press the relay key and type /handoff"
    assert render_over_screen(full) == full
    assert render_over_screen(full, key="Ctrl-G") == "When it suits you: press Ctrl-G and type /handoff"
    known = "See (in another terminal): agent-relay daemon logs"
    assert render_over_screen("See: agent-relay daemon logs") == known


def test_a_long_hostile_line_is_rendered_in_the_time_of_its_length() -> None:
    """Reasons quote what programs printed."""
    text = "agent-relay " * 20_000 + "--a" * 50_000
    assert render_over_screen(text).endswith("--a")


def test_where_slash_commands_are_typed_without_the_key_nobody_is_told_to_press_it() -> None:
    """It would be pressed in vain there."""
    text = "press the relay key and type /use ann to hand its work to a new ann"
    bare = "/use ann to hand its work to a new ann"
    assert (render_at_key(text, ""), render_in_shell(text, "", ())) == (bare, bare)
    assert render_over_screen(text) == text
