"""Calling for a person costs a terminal a few bytes it knows, whatever stands in the texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_relay.terminal.notification import FORMS, LONGEST, find_form, render_notification

XTERM = {"TERM": "xterm-256color"}


@pytest.mark.parametrize(
    ("environ", "form"),
    [
        (XTERM | {"TERM_PROGRAM": "iTerm.app"}, "osc9"),
        (XTERM | {"TERM_PROGRAM": "WarpTerminal"}, "osc9"),
        (XTERM | {"TERM_PROGRAM": "WezTerm"}, "osc777"),
        (XTERM | {"TERM_PROGRAM": "ghostty"}, "osc777"),
        ({"TERM": "xterm-ghostty"}, "osc777"),
        ({"TERM": "xterm-kitty"}, "osc99"),
        (XTERM | {"KITTY_WINDOW_ID": "1"}, "osc99"),
        ({"TERM": "foot-extra"}, "osc777"),
        ({"TERM": "rxvt-unicode-256color"}, "osc777"),
        (XTERM | {"WT_SESSION": "0b5e"}, "osc777"),
        (XTERM | {"VTE_VERSION": "7600"}, "osc777"),
        (XTERM | {"VTE_VERSION": "4500"}, ""),
        (XTERM | {"VTE_VERSION": "٧٦٠٠"}, ""),
        (XTERM | {"VTE_VERSION": "9" * 5000}, ""),
        (XTERM | {"TERM_PROGRAM": "Apple_Terminal"}, ""),
        ({"TERM": "linux"}, ""),
        ({"TERM": "dumb", "TERM_PROGRAM": "iTerm.app"}, ""),
        (XTERM | {"TERM_PROGRAM": "WezTerm", "TMUX": "/run/tmux/default,1,0"}, ""),
        ({"TERM": "tmux-256color", "KITTY_WINDOW_ID": "1"}, ""),
        ({"TERM": "screen.xterm-kitty"}, ""),
        (XTERM | {"STY": "1.pts", "WT_SESSION": "0b5e"}, ""),
        ({}, ""),
    ],
)
def test_the_form_is_the_one_the_terminal_takes(environ: dict[str, str], form: str) -> None:
    """A form a terminal does not know is nothing at best, and litter on the agent's screen at worst."""
    assert find_form(environ) == form


TOLD = ("shop: codex goes on", "claude hit its usage limit.")
SHOWN = {
    ("osc9", *TOLD): b"\x1b]9;shop: codex goes on: claude hit its usage limit.\x1b\\",
    ("osc99", *TOLD): b"\x1b]99;i=agent-relay:d=0;shop: codex goes on\x1b\\"
    b"\x1b]99;i=agent-relay:d=1:p=body;claude hit its usage limit.\x1b\\",
    ("osc777", *TOLD): b"\x1b]777;notify;shop: codex goes on;claude hit its usage limit.\x1b\\",
    ("", *TOLD): b"",
    ("osc8", *TOLD): b"",
    # `9;4;…` is a progress bar of ConEmu, and a project may be called anything.
    ("osc9", "4;1;90", "b"): b"\x1b]9;agent-relay: 4;1;90: b\x1b\\",
    # Semicolons part the fields of this form.
    ("osc777", "a;b", "c;d"): b"\x1b]777;notify;a,b;c,d\x1b\\",
    # A folder may be called like a sequence that types into the shell behind the agent.
    ("osc9", "x\x1b]52;c;cm0=\x07\x9c\x1b\\\x9d0;y\n\r\x00\u202ez\ud800", ""):
        b"\x1b]9;x ]52;c;cm0= \\ 0;y z: \x1b\\",
}  # fmt: skip


def test_the_bytes_are_those_the_form_asks_for() -> None:
    """Terminals show exactly what their own pages say, and drop the rest."""
    shown = {told: render_notification(*told, bell=False) for told in SHOWN}
    assert shown == SHOWN


def test_the_bell_rings_only_where_it_is_wished_for() -> None:
    """`notify = "osc"` is for those who cannot bear it."""
    for form in ("osc9", "osc99", "osc777", "", "osc8"):
        quiet = render_notification(form, "a", "b", bell=False)
        assert render_notification(form, "a", "b", bell=True) == b"\x07" + quiet


@given(form=st.sampled_from(sorted(FORMS)), title=st.text(max_size=400), text=st.text(max_size=400))
def test_no_text_ends_the_sequence_or_begins_another(form: str, title: str, text: str) -> None:
    """Whoever chooses the name of a folder or a branch would command every terminal it is opened in."""
    shown = render_notification(form, title, text, bell=False).decode()
    ends = shown.count("\x1b\\")
    assert (shown.count("\x1b"), shown.count("\x1b]")) == (2 * ends, ends)
    assert [one for one in shown if ord(one) < 0x20 and one != "\x1b"] == []
    assert [one for one in shown if 0x7F <= ord(one) < 0xA0] == []
    assert len(shown) < 2 * LONGEST + 100
