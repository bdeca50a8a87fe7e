"""The answers of a holder: one function per operation of the protocol described in this package."""

import os
import stat

from agent_relay.terminal.holder._holder import Holder
from agent_relay.terminal.holder._peers import HolderPeer
from agent_relay.terminal.holder._terminal import LONGEST_TEXT, MOST_TEXTS, Bar, Terminal
from agent_relay.terminal.holder._typing_queue import REFUSED_BYTES
from agent_relay.terminal.keystrokes import KeyScanner, kitty_key
from agent_relay.terminal.notification import render_notification

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PROTOCOL = 1
# Worst case six bytes of JSON for one byte of output: stays under the longest frame.
TAIL_LIMIT_BYTES = 128 << 10
_MOST_ROWS = 1000
_MOST_COLS = 2000
_MOST_PX = 0xFFFF
_TEXT_LENGTH = 2000
_HIGHEST_CONTROL = 0x1F
# What was typed longer ago than this is on the screen that the daemon saw last.
_SHOWN_S = 2.0


class RefusedError(Exception):
    """The operation was understood and not done; `code` is for programs, the sentence for people."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


def answer(holder: Holder, peer: HolderPeer, message: dict[str, object]) -> None:
    """Do what the message asks and answer it; report an error in the message to its sender only.

    An error of our own is refused as `failed`, and the connection ends, with the terminal it attached.
    """
    op, number = message.get("op"), message.get("id")
    operation = (_OPERATIONS.get(op) if isinstance(op, str) else None) or _unknown
    # Only plain ids are given back: writing one that is nested deeply takes more stack than reading it.
    reply: dict[str, object] = {"id": number if isinstance(number, int | str) else None, "ok": True}
    with holder.faults.guard(f"answering {op}") as guard:
        try:
            reply |= operation(holder, peer, message)
        except RefusedError as refusal:
            reply |= {"ok": False, "code": refusal.code, "error": str(refusal)}
    if guard.failed:
        peer.send(reply | {"ok": False, "code": "failed", "error": "the holder made a mistake with this"})
        holder.peers.drop(peer)
        return
    peer.send(reply)
    if op == "leave" and reply["ok"] and message.get("later") is not True:
        holder.loop.stop()


def _number(message: dict[str, object], name: str, low: int, high: int, default: int | None = None) -> int:
    value = message.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise RefusedError("bad-request", f"{name} must be a number from {low} to {high}")
    return value


def _bytes(message: dict[str, object], name: str) -> bytes:
    value = message.get(name)
    try:
        return value.encode("latin-1") if isinstance(value, str) else _refuse_bytes(name)
    except UnicodeEncodeError:
        return _refuse_bytes(name)


def _refuse_bytes(name: str) -> bytes:
    raise RefusedError("bad-request", f"{name} must be text of one character per byte")


def _text(message: dict[str, object], name: str) -> str:
    value = message.get(name)
    if not isinstance(value, str) or len(value) > _TEXT_LENGTH:
        raise RefusedError("bad-request", f"{name} must be text of at most {_TEXT_LENGTH} characters")
    return value


def _size(message: dict[str, object]) -> tuple[int, int, int, int]:
    return (
        _number(message, "rows", 1, _MOST_ROWS),
        _number(message, "cols", 1, _MOST_COLS),
        _number(message, "width_px", 0, _MOST_PX, 0),
        _number(message, "height_px", 0, _MOST_PX, 0),
    )


def _unknown(_holder: Holder, _peer: HolderPeer, message: dict[str, object]) -> dict[str, object]:
    op = message.get("op")
    raise RefusedError("unknown-op", f"there is no operation {op[:40] if isinstance(op, str) else None!r}")


def _hello(holder: Holder, _peer: HolderPeer, _message: dict[str, object]) -> dict[str, object]:
    return {"protocol": PROTOCOL, "pid": os.getpid(), "child": holder.child.pid, "born": holder.child.born}


def _status(holder: Holder, _peer: HolderPeer, _message: dict[str, object]) -> dict[str, object]:
    tail = holder.output.tail
    return {
        "pid": os.getpid(),
        "child": holder.child.pid,
        "born": holder.child.born,
        "rows": holder.size[0],
        "cols": holder.size[1],
        "attached": len(holder.terminals.all),
        "typed": holder.terminals.line.count,
        "key_age_s": holder.key_age_s(),
        "offset": tail.total,
        "tail_start": tail.start,
        "title": holder.output.title(),
        "agent_state": holder.output.scanner.state,
        "alternate": holder.output.is_alternate(),
        "emulator": holder.output.emulator is not None,
        "queued": holder.typing.size,
        "noted": holder.noted,
        "bar": holder.terminals.bar is not None,
        "holds_keys": holder.terminals.holds_keys,
        "held": holder.terminals.input.held,
        "faults": holder.faults.count,
        "exit": None if holder.exit is None else holder.exit_event(),
    }


def _screen(holder: Holder, _peer: HolderPeer, message: dict[str, object]) -> dict[str, object]:
    screen = holder.output.screen(peek=message.get("peek") is True)
    if screen is None:
        raise RefusedError("no-emulator", "the terminal emulator's library is missing")
    return {"screen": screen, "offset": holder.output.tail.total}


def _tail(holder: Holder, _peer: HolderPeer, message: dict[str, object]) -> dict[str, object]:
    limit = _number(message, "limit", 1, TAIL_LIMIT_BYTES, TAIL_LIMIT_BYTES)
    total = holder.output.tail.total
    offset, data = holder.output.tail.read(
        _number(message, "offset", 0, 1 << 62, max(0, total - limit)), limit
    )
    return {"offset": offset, "data": data.decode("latin-1"), "total": total}


def _input(holder: Holder, peer: HolderPeer, message: dict[str, object]) -> dict[str, object]:
    data = _bytes(message, "data")
    noted = _text({"note": holder.noted, **message}, "note")
    if holder.child.exit is not None:
        raise RefusedError("ended", "the program has ended")
    if message.get("unless_typed") is True and holder.terminals.line.count:
        raise RefusedError("typed", "somebody is in the middle of a line")
    if holder.typing.size + len(data) > REFUSED_BYTES:
        raise RefusedError("full", "the program does not read its input")
    holder.typing.put(peer, data, in_paste=message.get("goes_on") is True)
    holder.noted = noted
    if data.endswith((b"\r", b"\x03", b"\x15")):
        holder.terminals.submit_line()
    return {"queued": holder.typing.size}


def _resize(holder: Holder, peer: HolderPeer, message: dict[str, object]) -> dict[str, object]:
    size = _size(message)
    if peer.terminal is not None:
        holder.terminals.resize(peer.terminal, size)
    else:
        holder.resize(size)
    return {}


def _signal(holder: Holder, _peer: HolderPeer, message: dict[str, object]) -> dict[str, object]:
    try:
        return {"reached": holder.child.signal(str(message.get("signal")))}
    except ValueError as error:
        raise RefusedError("bad-request", str(error)) from error


def _watch(holder: Holder, peer: HolderPeer, message: dict[str, object]) -> dict[str, object]:
    peer.watching = True
    return _status(holder, peer, message)


def _attach(holder: Holder, peer: HolderPeer, message: dict[str, object]) -> dict[str, object]:
    held = _bytes({"held": "", **message}, "held")
    passed, peer.fds = peer.fds, []
    try:
        terminal = _build_terminal(holder, peer, message, passed)
    finally:
        for fd in passed:
            os.close(fd)
    peer.terminal = terminal
    holder.terminals.add(terminal)
    holder.nudge()
    holder.terminals.input.hold_again(terminal, held)
    return {"child": holder.child.pid}


def _build_terminal(
    holder: Holder, peer: HolderPeer, message: dict[str, object], passed: list[int]
) -> Terminal:
    """Build the terminal to attach; remove its descriptor from `passed` if it is used as it is."""
    if holder.exit is not None:
        raise RefusedError("ended", "the program has ended")
    if peer.terminal is not None:
        raise RefusedError("bad-request", "this connection attached a terminal already")
    if not passed:
        raise RefusedError("bad-request", "no terminal was passed")
    size = _size(message) if "rows" in message else holder.size
    keys = KeyScanner(_number(message, "relay_key", 0, _HIGHEST_CONTROL, 0), holder.terminals.line)
    if stat.S_ISSOCK(os.fstat(passed[0]).st_mode):
        fd = passed.pop(0)
        os.set_blocking(fd, False)
    else:
        fd = _open_tty(holder, passed[0])
    terminal = Terminal(fd, keys, size, peer.send, message.get("modes"))
    terminal.keeps = message.get("keep") is True
    terminal.form = str(message.get("form", ""))
    return terminal


def _open_tty(holder: Holder, fd: int) -> int:
    """Open the passed tty anew; refuse what is not a terminal of our user.

    O_NONBLOCK belongs to the open file, not to the descriptor: set on the passed one it would reach the
    user's shell.
    """
    given = os.fstat(fd)
    if not os.isatty(fd) or given.st_uid != os.geteuid():
        raise RefusedError("tty-refused", "that is not your terminal")
    if given.st_rdev == holder.own_tty:
        # Its output would be its input, without end.
        raise RefusedError("own-terminal", "this terminal is the agent's own")
    try:
        opened = os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise RefusedError("tty-refused", f"the terminal cannot be opened: {error.strerror}") from error
    if os.fstat(opened).st_rdev != given.st_rdev:
        os.close(opened)
        raise RefusedError("tty-refused", "another terminal was opened")
    return opened


def _get_terminal(peer: HolderPeer) -> Terminal:
    if peer.terminal is None:
        raise RefusedError("bad-request", "this connection attached no terminal")
    return peer.terminal


def _pause(holder: Holder, peer: HolderPeer, _message: dict[str, object]) -> dict[str, object]:
    terminal = _get_terminal(peer)
    holder.terminals.pause(terminal)
    return {"rest": holder.terminals.input.take_unread(terminal).decode("latin-1")}


def _cover(holder: Holder, peer: HolderPeer, _message: dict[str, object]) -> dict[str, object]:
    holder.terminals.cover(_get_terminal(peer))
    return {}


def _resume(holder: Holder, peer: HolderPeer, message: dict[str, object]) -> dict[str, object]:
    terminal, typed = _get_terminal(peer), _bytes({"typed": "", **message}, "typed")
    if message.get("relay_key") is True and terminal.keys.relay_key:
        relay_key = terminal.keys.relay_key
        if terminal.holds:
            terminal.held.add(bytes((relay_key,)))
        else:
            key = kitty_key(relay_key) if holder.output.wants_kitty_keys() else bytes((relay_key,))
            holder.typing.put(terminal, key, in_paste=False)
    if terminal in holder.terminals.all:
        holder.terminals.resume(terminal)
        holder.nudge()
        holder.terminals.input.type(terminal, typed)
    return {}


def _detach(holder: Holder, peer: HolderPeer, _message: dict[str, object]) -> dict[str, object]:
    chosen = list(holder.terminals.all) if peer.terminal is None else [peer.terminal]
    for terminal in chosen:
        holder.terminals.remove(terminal, {"event": "detached"})
    return {"detached": len(chosen)}


def _say(holder: Holder, _peer: HolderPeer, message: dict[str, object]) -> dict[str, object]:
    """Send the text to every client, which shows it as it can; the terminals themselves are the agent's."""
    _see_line(holder, message)
    told: dict[str, object] = {"event": "say", "text": _text(message, "text")}
    if message.get("kind") == "rest":
        told |= {"kind": "rest", "line": message.get("line")}
    for terminal in holder.terminals.all:
        terminal.tell(told)
    return {"told": len(holder.terminals.all)}


def _see_line(holder: Holder, message: dict[str, object]) -> None:
    """Forget a half-typed line that the screen shows to be empty: it was an answer, or was erased.

    Where no input line was ever shown, it is no other agent's: maybe the code of a sign-in.
    """
    age_s, shown = holder.key_age_s(), message.get("line")
    if shown == "hidden":
        holder.terminals.line.forget_keys()
    elif shown == "empty" and (age_s is None or age_s > _SHOWN_S):
        holder.terminals.line.clear()


def _bar(holder: Holder, _peer: HolderPeer, message: dict[str, object]) -> dict[str, object]:
    """Show or remove the bar. What was not given to an agent that has ended stays with its client."""
    told = _texts(message)
    _see_line(holder, message)
    holder.terminals.question = None
    if told:
        holder.terminals.set_bar(Bar(told, holds_keys=message.get("holds_keys") is True))
    elif holder.child.exit is None and holder.terminals.bar is not None:
        holder.terminals.set_bar(None)
        holder.nudge()
    return {}


def _asking(holder: Holder, _peer: HolderPeer, message: dict[str, object]) -> dict[str, object]:
    """Give the child nothing of what is held: it would be taken for an answer."""
    told, had_bar = _texts(message), holder.terminals.bar is not None
    if told and holder.child.exit is None:
        holder.terminals.show_question(Bar(told, holds_keys=False))
        if had_bar and holder.terminals.bar is None:
            holder.nudge()
    return {}


def _texts(message: dict[str, object]) -> list[str]:
    texts = message.get("texts")
    if not isinstance(texts, list) or len(texts) > MOST_TEXTS:
        raise RefusedError("bad-request", f"texts must be a list of at most {MOST_TEXTS}")
    told = [text for text in texts if isinstance(text, str) and len(text) <= LONGEST_TEXT]
    if len(told) < len(texts):
        raise RefusedError("bad-request", f"texts must be of at most {LONGEST_TEXT} characters")
    return told


def _notify(holder: Holder, _peer: HolderPeer, message: dict[str, object]) -> dict[str, object]:
    """Call for the person on every terminal, by the bell and in the form the terminal takes."""
    title, text = _text(message, "title"), _text(message, "text")
    bell, osc = message.get("bell") is True, message.get("osc") is True
    for terminal in tuple(holder.terminals.all):
        form = terminal.form if osc else ""
        holder.terminals.send_alert(terminal, render_notification(form, title, text, bell=bell))
    return {"told": len(holder.terminals.all)}


def _luggage(holder: Holder, _peer: HolderPeer, _message: dict[str, object]) -> dict[str, object]:
    return {"luggage": holder.spec.luggage}


def _collect(holder: Holder, _peer: HolderPeer, _message: dict[str, object]) -> dict[str, object]:
    if holder.exit is None:
        raise RefusedError("running", "the program has not ended")
    return {"exit": holder.exit, "survivors": holder.child.end_session()}


def _leave(holder: Holder, _peer: HolderPeer, message: dict[str, object]) -> dict[str, object]:
    if message.get("later") is True:
        holder.dismiss()
    elif holder.exit is None:
        raise RefusedError("running", "the program has not ended")
    return {}


_OPERATIONS: "dict[str, Callable[[Holder, HolderPeer, dict[str, object]], dict[str, object]]]" = {
    "hello": _hello,
    "status": _status,
    "screen": _screen,
    "tail": _tail,
    "input": _input,
    "resize": _resize,
    "signal": _signal,
    "watch": _watch,
    "attach": _attach,
    "pause": _pause,
    "cover": _cover,
    "resume": _resume,
    "detach": _detach,
    "say": _say,
    "bar": _bar,
    "asking": _asking,
    "notify": _notify,
    "luggage": _luggage,
    "collect": _collect,
    "leave": _leave,
}
