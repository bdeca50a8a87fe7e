"""Make a terminal call for its person: by the bell, and by a notification in the form the terminal takes.

Hot commands load this, so it loads nothing.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

OSC_9, OSC_99, OSC_777 = "osc9", "osc99", "osc777"
FORMS = frozenset({OSC_9, OSC_99, OSC_777})
LONGEST = 200
"""The most characters of a title or a text: a notification shows two lines."""
_OLDEST_VTE = 4600  # older ones print what they do not know, as OSC 777, as text
_BY_PROGRAM = {
    "iTerm.app": OSC_9,
    "WarpTerminal": OSC_9,
    "WezTerm": OSC_777,
    "ghostty": OSC_777,
    "rio": OSC_777,
}
_BY_TERM = (
    ("xterm-kitty", OSC_99),
    ("xterm-ghostty", OSC_777),
    ("wezterm", OSC_777),
    ("foot", OSC_777),
    ("rxvt-unicode", OSC_777),
    ("contour", OSC_777),
)
_BY_VARIABLE = (("KITTY_WINDOW_ID", OSC_99), ("WT_SESSION", OSC_777))


def find_form(environ: "Mapping[str, str]") -> str:
    """Return which notification the terminal of this environment takes; empty if only the bell is sure.

    Inside tmux and screen the variables may be those of a terminal no longer in use, and tmux drops what it
    does not know unless its user allowed otherwise: both pass the bell on. A terminal that knows none of
    these forms ignores what it is sent, except old VTE.
    """
    term = environ.get("TERM", "")
    if "TMUX" in environ or "STY" in environ or term.startswith(("tmux", "screen", "dumb")):
        return ""
    named = _BY_PROGRAM.get(environ.get("TERM_PROGRAM", ""), "")
    by_term = next((form for start, form in _BY_TERM if term.startswith(start)), "")
    by_variable = next((form for name, form in _BY_VARIABLE if environ.get(name)), "")
    vte = environ.get("VTE_VERSION", "")
    is_new_vte = vte.isascii() and vte.isdigit() and len(vte) < 10 and int(vte) >= _OLDEST_VTE  # noqa: PLR2004 - no version is longer
    return named or by_term or by_variable or (OSC_777 if is_new_vte else "")


def clean(text: str) -> str:
    """Return `text` in one line of at most `LONGEST` characters, without anything a terminal might obey."""
    kept = "".join(one if one.isprintable() else " " for one in text[: 4 * LONGEST])
    line = " ".join(kept.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def render_notification(form: str, title: str, text: str, *, bell: bool) -> bytes:
    """Return the bytes for a terminal that takes notifications in `form`, one of `FORMS` or empty."""
    title, text = clean(title), clean(text)
    rung = b"\x07" if bell else b""
    if not (title or text):
        return rung
    if form == OSC_9:
        # ConEmu and those after it read digits and a semicolon at the beginning as something else.
        said = f"agent-relay: {title}: {text}" if title[:1].isdigit() else f"{title}: {text}"
        return rung + b"\x1b]9;" + said.encode() + b"\x1b\\"
    if form == OSC_99:
        begun = b"\x1b]99;i=agent-relay:d=0;" + title.encode() + b"\x1b\\"
        return rung + begun + b"\x1b]99;i=agent-relay:d=1:p=body;" + text.encode() + b"\x1b\\"
    if form == OSC_777:
        # Semicolons part the fields.
        named = title.replace(";", ",").encode() + b";" + text.replace(";", ",").encode()
        return rung + b"\x1b]777;notify;" + named + b"\x1b\\"
    return rung
