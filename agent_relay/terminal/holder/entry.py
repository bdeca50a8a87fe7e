"""The program of a holder: run with `-I -S` by path; reads its spec on stdin, answers a line on stdout.

With `--check` it holds nothing: the line is the list of the files it is made of.
"""

import json
import os
import signal
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agent_relay.terminal.emulation.emulator import Emulator
    from agent_relay.terminal.holder.wire import HolderSpec

CHECK = "--check"
_READ_BYTES = 1 << 16
_INT_BYTES = 4
_STANDARD = 2


def main() -> None:
    """Hold one leg from its spawn to the collection of its exit status."""
    # -I and -S keep this start free of site-packages and of the user's environment; ours comes last.
    sys.path.append(os.path.abspath(__file__).rsplit(os.sep, 4)[0])
    os.chdir("/")
    _close_inherited()
    # All of it before the spec: whoever sends that waits for an agent.
    import agent_relay.terminal.emulation.emulator
    import agent_relay.terminal.holder._holder
    import agent_relay.terminal.holder._operations  # noqa: F401 - loaded, and used below
    from agent_relay.terminal.holder._event_loop import append_note
    from agent_relay.terminal.holder.wire import list_descriptors

    if sys.argv[1:] == [CHECK]:
        _tell_files()
        return
    spec = _read_spec()
    if spec is None:
        # With 0 it would say that there is a holder now.
        sys.exit(1)
    # The agent must not inherit a lock: it would look held as long as any process of the agent lives.
    for handle in list_descriptors(spec):
        os.set_inheritable(handle, False)
    if os.fork():
        os._exit(0)
    os.setsid()
    for name in ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTSTP", "SIGTTIN", "SIGTTOU"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    # Ignored by whoever started us it would be ignored here, and the agent's status would be lost.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        _hold(spec)
    except Exception as error:  # noqa: BLE001 - the root of the process: whatever it is must be readable later
        append_note(spec.leg_folder, error, "holding")
        os._exit(70)
    os._exit(0)


def _close_inherited() -> None:
    """Close what whoever started the daemon had open: it would stay open as long as the agent lives."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > _STANDARD:
            try:
                os.close(int(name))
            except OSError:
                # The listing's own.
                continue


def _tell_files() -> None:
    """Print where all that was loaded came from."""
    files = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
    os.write(1, json.dumps(sorted(files - {""})).encode() + b"\n")


def _hold(spec: "HolderSpec") -> None:
    from agent_relay.terminal.holder._holder import Holder
    from agent_relay.terminal.holder._operations import answer
    from agent_relay.terminal.holder._output import Output

    try:
        holder = Holder(spec)
    except OSError as error:
        _report({"ok": False, "error": error.strerror, "errno": error.errno, "file": _name(error, spec)})
        return
    is_known = False
    try:
        holder.umask = os.umask(0o077)
        emulator, why = _find_emulator(spec)
        holder.serve(Output(emulator, holder.faults), answer)
        _report(
            {
                "ok": True,
                "pid": os.getpid(),
                "child": holder.child.pid,
                "born": holder.child.born,
                "emulator_error": why,
            }
        )
        is_known = True
    finally:
        if not is_known:
            # Somebody may begin this leg anew: its child must not work beside that one.
            holder.child.withdraw(spec.leg_folder)
    holder.loop.run()
    _remove_socket(spec.leg_folder)


def _find_emulator(spec: "HolderSpec") -> "tuple[Emulator | None, str]":
    """Return the emulator, or `None` and why: a holder without one still holds, attaches and reports."""
    if not spec.library:
        return None, "no library"
    from agent_relay.terminal.emulation.emulator import Emulator
    from agent_relay.terminal.emulation.ghostty import EmulatorError

    try:
        return Emulator(spec.library, spec.cols, spec.rows), ""
    except EmulatorError as error:
        return None, error.sentence


def _name(error: OSError, spec: "HolderSpec") -> str:
    return error.filename if isinstance(error.filename, str) else spec.argv[0]


def _read_spec() -> "HolderSpec | None":
    """Read the spec and the descriptors that came with it; return `None` if the sender has gone."""
    import _socket

    from agent_relay.terminal.holder.wire import parse_spec

    room = _socket.CMSG_SPACE(3 * _INT_BYTES)
    told = _socket.socket(fileno=os.dup(0))
    data, descriptors = b"", []
    while True:
        part, extras, _, _ = told.recvmsg(_READ_BYTES, room, _socket.MSG_CMSG_CLOEXEC)
        for level, kind, found in extras:
            if (level, kind) == (_socket.SOL_SOCKET, _socket.SCM_RIGHTS):
                descriptors += memoryview(found).cast("i").tolist()
        if not part:
            break
        data += part
    told.close()
    if not data:
        return None
    return parse_spec(data, descriptors)


def _report(line: dict[str, object]) -> None:
    """Report how the start went, then close the connection to whoever started us."""
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
