"""What a crash report may say of an error: types and lines of our own code, never a message or a value.

A holder writes its notes with this: nothing is imported that it does not have anyway.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

_CHAIN_LIMIT = 8
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def render_error(error: BaseException) -> list[str]:
    """Return the lines for the error and for what caused it, eight errors at most."""
    lines: list[str] = []
    current: BaseException | None = error
    for _ in range(_CHAIN_LIMIT):
        if current is None:
            break
        lines.append(type(current).__name__)
        lines.extend(_render_frames(current.__traceback__))
        following = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
        if following is not None:
            lines.append("caused by")
        current = following
    return lines


def _render_frames(trace: "TracebackType | None") -> list[str]:
    lines: list[str] = []
    foreign = 0
    while trace is not None:
        code = trace.tb_frame.f_code
        if os.path.abspath(code.co_filename).startswith(_PACKAGE + os.sep):
            if foreign:
                lines.append(f"  ({foreign} lines of other code)")
                foreign = 0
            place = os.path.relpath(os.path.abspath(code.co_filename), os.path.dirname(_PACKAGE))
            lines.append(f"  {place}:{trace.tb_lineno} in {code.co_name}")
        else:
            foreign += 1
        trace = trace.tb_next
    if foreign:
        lines.append(f"  ({foreign} lines of other code)")
    return lines
