"""Make text from anywhere safe to paste into a terminal and to quote inside the handoff document."""

import re

from agent_relay.domain.text.patterns import compile_late

# Whole terminal sequences go first, so that no `[201~` or `[31m` is left behind as litter. An operating
# system command that is never closed ends with its line.
_SEQUENCE = compile_late(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*[@-~]"
    "|(?:\x1b[\\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\\\|\x9c)?"
    "|\x1b[ -/]*[0-~]"
)
_BREAK = compile_late("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_UNSEEN = compile_late(
    "[\x00-\x08\x0e-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2060-\u2064\u206a-\u206f\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
# What reorders the text around it is written out: a reader should see that somebody tried.
_REORDERING = compile_late("[\u202a-\u202e\u2066-\u2069]")
_SURROGATE = compile_late("[\ud800-\udfff]")
_TAG = compile_late(r"<(?=\s*+(?:/\s*+)?handoff[-_]context)", re.IGNORECASE)
_SUSPECT = compile_late("[^\t\n -~\u00a0-\u00ac\u00ae-\u0600\u3000-\u9fff]")


def clean_text(text: str) -> str:
    r"""Return `text` without terminal sequences, control (but LF and TAB) or invisible characters.

    CR becomes LF; bidirectional overrides and undecodable bytes are written as `\uNNNN`. Idempotent.
    """
    if _SUSPECT.search(text) is None:
        return text
    text = _SEQUENCE.sub("", text)
    text = _UNSEEN.sub("", _BREAK.sub("\n", text))
    return _SURROGATE.sub(_escape, _REORDERING.sub(_escape, text))


def quote_text(text: str) -> str:
    """Return `text` cleaned, and unable to open or close the handoff document around it. Idempotent."""
    return _TAG.sub("\u2039", clean_text(text))


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
