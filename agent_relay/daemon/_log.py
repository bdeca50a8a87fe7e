"""The daemon's log file: one line an event, bounded in size, never with contents."""

import logging
import logging.handlers
import os
import sys
import time

_LIMIT_BYTES = 1 << 20


def open_log(path: str) -> None:
    """Write everything logged, and all output on the standard descriptors, to `path` from now on.

    At 1 MiB the file becomes `path.1` and a new one begins. Lines of other packages appear without their
    arguments, which may be anything. Raises OSError.
    """
    handler = _LogFile(path, maxBytes=_LIMIT_BYTES, backupCount=1)
    handler.setFormatter(_Formatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    # A full disk must not fill the log with tracebacks about the log.
    logging.raiseExceptions = False


def redirect_stdio(handle: int) -> None:
    """Make standard input empty, and standard output and error write to `handle`."""
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout.flush()
    sys.stderr.flush()
    for standard in (1, 2):
        os.dup2(handle, standard)


class _LogFile(logging.handlers.RotatingFileHandler):
    """A rotating log file, readable by its user only; the standard descriptors follow each rotation."""

    def _open(self):  # type: ignore[no-untyped-def]  # noqa: ANN202 - the stream's type is logging's own secret
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(self.baseFilename, flags, 0o600)
        redirect_stdio(handle)
        return open(handle, "a", encoding="utf-8", errors="backslashreplace")


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        ours = record.name.split(".", 1)[0] in ("agent_relay", "__main__")
        text = record.getMessage() if ours else f"foreign logger={record.name}"
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        line = f"{moment} {record.levelname.lower()} {text}"
        if record.exc_info and record.exc_info[0] is not None:
            line += f" error={record.exc_info[0].__name__}"
        return "".join(character if character.isprintable() else "?" for character in line)
