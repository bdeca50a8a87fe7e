"""Describe an error without its message: a temporary shortage, or the lines of our code it passed.

What fails because the machine lacks something for a while is tried again, and is no bug of ours. A crash
report names types and lines of our own code, never a message or a value. A holder writes its notes with this:
it imports nothing that a holder does not load anyway.
"""

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType


_PASSING = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.ENOBUFS})
_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT})


def find_shortage(error: BaseException) -> str:
    """Return what `error` or its cause was raised for lack of: descriptors, memory, disk room; else empty."""
    number = find_shortage_number(error)
    return os.strerror(number) if number else ""


def find_shortage_number(error: BaseException) -> int:
    """Return the number of the error that names what `find_shortage` does; 0 for none."""
    return _find(error, _PASSING | _ROOM)


def find_passing(error: BaseException) -> str:
    """Return what `find_shortage` does, but only for what becomes free by itself: not for disk space."""
    number = _find(error, _PASSING)
    return os.strerror(number) if number else ""


def find_outer_cause(error: BaseException) -> str:
    """Return why `error` is no bug of ours: what this machine lacks, or that a peer left; else empty."""
    return find_passing(error) or ("a connection broke" if isinstance(error, ConnectionError) else "")


def _find(error: BaseException | None, numbers: frozenset[int]) -> int:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, OSError) and error.errno in numbers:
            return error.errno
        if isinstance(error, MemoryError):
            return errno.ENOMEM
        error = error.__cause__ or error.__context__
    return 0


def start_thread(
    name: str, work: "Callable[[], object]", *, on_failure: "Callable[[BaseException], None]"
) -> None:
    """Run `work` on a thread that ends with the process; call `on_failure` there with what it raises.

    Raises RuntimeError if this user may have no more threads.
    """
    # Not `_thread`: whichever thread loads `threading` first is its main thread, which an exit waits for.
    import threading

    def run() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - the root of a thread: somebody must hear of its end
            on_failure(error)

    threading.Thread(target=run, name=name, daemon=True).start()


_CHAIN_LIMIT = 8
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def render_error(error: BaseException) -> list[str]:
    """Render the error and what caused it as lines, eight errors at most."""
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
