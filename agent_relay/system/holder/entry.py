"""The program of a holder: run with `-I -S` by path, told its spec on stdin, one line back on stdout."""

import json
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_relay.logic.emulator import Emulator
    from agent_relay.system.holder.spec import HolderSpec

CRASH_FILE = "holder-crash.txt"
_READ_BYTES = 1 << 16


def main() -> None:
    """Hold one leg from its spawn to the collection of its exit status."""
    # -I and -S keep this start free of site-packages and of the user's environment; ours comes last.
    sys.path.append(os.path.abspath(__file__).rsplit(os.sep, 4)[0])
    from agent_relay.system.holder.spec import parse_spec

    spec = parse_spec(_read_all(0))
    # The agent must not inherit the lock: it would look held as long as any process of the agent lives.
    os.set_inheritable(spec.lock_fd, False)
    if os.fork():
        os._exit(0)
    os.setsid()
    for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTSTP", "SIGTTIN", "SIGTTOU"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    try:
        _hold(spec)
    except Exception:  # noqa: BLE001 - the root of the process: whatever it is must be readable later
        import traceback

        with open(f"{spec.leg_folder}/{CRASH_FILE}", "w", encoding="utf-8") as file:
            traceback.print_exc(file=file)
        os._exit(70)
    os._exit(0)


def _hold(spec: "HolderSpec") -> None:
    from agent_relay.system.holder.leg import Leg
    from agent_relay.system.holder.operations import answer
    from agent_relay.system.holder.output import Output

    try:
        leg = Leg(spec)
    except OSError as error:
        _report({"ok": False, "error": error.strerror, "errno": error.errno, "file": _name(error, spec)})
        return
    try:
        leg.umask = os.umask(0o077)
        emulator, why = _find_emulator(spec)
        leg.serve(Output(emulator), answer)
        _report(
            {
                "ok": True,
                "pid": os.getpid(),
                "child": leg.child.pid,
                "born": leg.child.born,
                "emulator_error": why,
            }
        )
    except BaseException:
        # Nobody knows of this leg, and somebody may begin it anew: its child must not work beside that one.
        leg.child.withdraw(spec.leg_folder)
        raise
    leg.loop.run()
    _remove_socket(spec.leg_folder)


def _find_emulator(spec: "HolderSpec") -> "tuple[Emulator | None, str]":
    """The emulator, or `None` and why: a holder without one still holds, attaches and reports the end."""
    if not spec.library:
        return None, "no library"
    from agent_relay.logic.emulator import Emulator
    from agent_relay.logic.ghostty import EmulatorError

    try:
        return Emulator(spec.library, spec.cols, spec.rows), ""
    except EmulatorError as error:
        return None, error.sentence


def _name(error: OSError, spec: "HolderSpec") -> str:
    return error.filename if isinstance(error.filename, str) else spec.argv[0]


def _read_all(fd: int) -> bytes:
    parts = []
    while part := os.read(fd, _READ_BYTES):
        parts.append(part)
    return b"".join(parts)


def _report(line: dict[str, object]) -> None:
    """Say how it went, then let go of whoever started us."""
    os.write(1, json.dumps(line).encode() + b"\n")
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.close(null)


def _remove_socket(folder: str) -> None:
    try:
        os.unlink(f"{folder}/sock")
    except OSError:
        return


if __name__ == "__main__":
    main()
