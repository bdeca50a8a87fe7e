"""Separate a terminal's own answers to a program's questions from what a person does.

Forms: xterm's control sequences (XTerm Control Sequences, patch 390) and the kitty keyboard and graphics
protocols. A sequence that a key sends too is a key, unless an answer of that form is due.
"""

import re

# Private parameters (`?`) are never a key's. `>` may be one (xterm's modifyCursorKeys 3), but not with these
# endings; a mode's report has two parameters, because `CSI 3 $` is a key of rxvt.
_CSI = (
    rb"\[\?[0-9;:]*[ -/]*[@-~]|\[>[0-9;:]*(?:[cm]| q)|\[[0-9;:]+[nt]|\[[0-9]+;[0-9]+\$y|\[[23];[0-9;]+x"
    rb"|\[(?P<row>[0-9]+);[0-9]+R"
)
# No key begins like these; Alt-], Alt-P and Alt-_ are their first two bytes only.
_STRING = rb"\][0-9]+;|P[0-9;]*[!$+>]|_G"
# Only whole: its beginning is what Alt-] and a letter send.
_TITLE = rb"\][lL][^\x00-\x1f]*\x1b\\"
_ANSWER = re.compile(
    rb"\x1b(?:%b|%b|(?P<string>(?:%b)[^\x00-\x1f]*(?P<end>\x07|\x1b\\)?))" % (_CSI, _TITLE, _STRING)
)
_BEGUN = re.compile(rb"\x1b(?:\[[?>]?[0-9;:]{0,64}[$ ]?|\][0-9]{0,8}|P[0-9;]{0,8}|_)?\Z")
_REST = re.compile(rb"[^\x00-\x1f]*(?P<end>\x07|\x1b\\)?")
_CURSOR = re.compile(rb"\x1b\[[0-9]+;[0-9]+R")


def count_cursor(answers: bytes) -> int:
    """Count the answers that say where the cursor is, in the form that Ctrl-F3 has too."""
    return len(_CURSOR.findall(answers))


def is_answer(data: bytes) -> bool:
    """Return whether this is one answer and could not be a key."""
    found = _ANSWER.fullmatch(data)
    return found is not None and found["row"] != b"1"


class AnswerSieve:
    """Takes one terminal's answers out of its input, cut anywhere.

    `within` is whether the input so far ends within a long answer.
    """

    __slots__ = ("within",)

    def __init__(self) -> None:
        self.within = False

    def find_begun(self, data: bytes) -> int:
        """Return where what may become or end an answer begins at the end of `data`; else its length."""
        escape = data.rfind(b"\x1b")
        return escape if escape >= 0 and _BEGUN.match(data, escape) else len(data)

    def sift(self, data: bytes, cursor_due: int) -> tuple[bytes, bytes, int]:
        """Separate what a person did from the answers; return both, and what is left of `cursor_due`.

        That is how many reports of row and column are to come from this terminal; without one, row 1 with a
        column is F3 with Shift, Alt or Ctrl.
        """
        done, answers, at = [], [], 0
        if self.within and (rest := _REST.match(data)):
            at = rest.end()
            self.within = at == len(data) and rest["end"] is None
            answers.append(rest.group())
        for found in _ANSWER.finditer(data, at):
            if found["row"] is not None:
                if found["row"] == b"1" and not cursor_due:
                    continue
                cursor_due = max(0, cursor_due - 1)
            done.append(data[at : found.start()])
            answers.append(found.group())
            at = found.end()
            self.within = found["string"] is not None and found["end"] is None and at == len(data)
        done.append(data[at:])
        return b"".join(done), b"".join(answers), cursor_due
