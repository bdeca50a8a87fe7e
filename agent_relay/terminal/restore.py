"""Restore a terminal: undo every mode an agent can have set."""

import os
import termios

# Kept apart from `emulation.repaint`, which an attaching client must not load. The cursor is saved around the
# scroll region's reset, which moves it. The alternate screen is entered before it is left: terminals restore
# the cursor they saved when it was entered last, and on the main screen that was for another program (tmux
# keeps that cursor apart from the one that `ESC 7` saves); where it is shown already, entering does nothing.
_BEGIN = b"\x18\x1b[?2026l\x1b[0m\x1b]8;;\x1b\\\x1b(B\x0f\x1b7\x1b[?69l\x1b[r\x1b8\x1b[4l\x1b[20l\x1b[<8u"
_END = (
    b"\x1b[=0;1u\x1b[>4m\x1b>\x1b[?1l\x1b[?5l\x1b[?7h\x1b[?9l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1005l"
    b"\x1b[?1006l\x1b[?1015l\x1b[?1016l\x1b[?1004l\x1b[?2004l\x1b[?2031l\x1b[0m\x1b[0 q\x1b[?25h"
    b"\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\"
)
RESTORE = _BEGIN + b"\x1b[?1049h\x1b[?1049l\x1b[<8u" + _END
# The same where the picture is to stay, because another agent comes: neither screen is left.
RESTORE_MODES = _BEGIN + _END
# What the terminal itself was asked to remember, its user's own to set: the title, alternate scroll, and how
# wide clusters of characters are (opencode switches 2027 on and never off; some terminals begin with it on).
REMEMBER = b"\x1b[22;0t\x1b[?1007;2027s"
GIVE_BACK = b"\x1b[?1007;2027r\x1b[23;0t"


def restore(fd: int, modes: object) -> None:
    """Restore the terminal behind `fd` in place of a client that died.

    `modes` are the line discipline's (as `termios.tcgetattr`, control characters as numbers); anything else
    leaves that as it is.
    """
    try:
        os.write(fd, RESTORE + GIVE_BACK)
        if isinstance(modes, list):
            control = [bytes((sign,)) for sign in modes[6]]
            termios.tcsetattr(fd, termios.TCSANOW, [*modes[:6], control])
    except (OSError, OverflowError, termios.error, TypeError, ValueError, IndexError):
        return
