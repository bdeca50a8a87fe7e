"""Separate typed keys from a terminal's answers, and keep them in order while no agent may receive them."""

import re

from agent_relay.terminal.query_answers import AnswerSieve
from agent_relay.terminal.typed_line import MOST_BYTES, PASTE_BEGIN, PASTE_END, TypedLine

_SHIFT, _ALT, _CTRL = 1, 2, 4
_CAPS = 64
# Bits of caps lock and num lock in a modifier (kitty keyboard protocol): neither makes it another key.
_LOCKS = _CAPS | 128
_RELEASED = b"3"
_ENTER = 0x0D
# The keys with Ctrl that submit or edit a line, by the codes of their letters.
_CTRL_KEYS = frozenset(b"abcdefhjuw")
# The kitty protocol gives keys that write nothing numbers of the private use area; those of the keypad do.
_KEYPAD = {
    **dict(zip(range(57399, 57417), b"0123456789./*-+\r=,", strict=True)),
    **dict(zip((57417, 57418, 57423, 57424, 57426), b"\x02\x06\x01\x05\x04", strict=True)),
}
_TEXT = (range(0x80), range(0xA0, 0xD800), range(0xF900, 0x110000))
# The beginning of what may become a key or a paste: held for a moment when a read ends in it.
_BEGUN = re.compile(rb"\x1b(?:\[[0-9:;]{0,20})?\Z")
# Whole sequences (keys, mouse, focus, the terminal's answers), which are not typed text. Numbers with more
# digits than a key's code or modifiers can have are no key's: Python refuses to read the longest of them.
_SEQUENCE = re.compile(
    rb"\x1b\[(?P<code>\d{1,7})(?::(?P<shifted>\d{0,7})(?::\d*)*)?"
    rb"(?:;(?P<modifiers>\d{0,4})(?::(?P<kind>\d{1,4}))?(?:;(?P<text>\d{0,7}(?::\d{0,7})*))?)?u"
    rb"|\x1b\[27;(?P<xterm_modifiers>\d{1,4});(?P<xterm>\d{1,7})~"
    rb"|\x1b\[M...|\x1b\[[0-?]*[ -/]*[@-~]|\x1bO.|\x1b[\]P_^][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[^\[\]OP_^]",
    re.DOTALL,
)
_SEQUENCE_BEGUN = re.compile(rb"\x1b(?:\[(?:M.{0,2}|[0-?]*[ -/]*)|O|[\]P_^][^\x07\x1b]*\x1b?)?\Z", re.DOTALL)
_LONGEST_ANSWER = 4096
# Characters that are part of no key's sequence unless one has begun.
_PLAIN = bytes(range(0x20, 0x7F))
_LINE_ENDS = bytes.maketrans(b"\r\n", b"  ")
_FOCUS = re.compile(rb"(?:\x1b\[[IO])+")
# Keys that move or erase within a line, as the control characters that do the same.
_EDITS = {
    **dict.fromkeys((b"\x1b[D", b"\x1bOD"), b"\x02"),
    **dict.fromkeys((b"\x1b[C", b"\x1bOC"), b"\x06"),
    **dict.fromkeys((b"\x1b[H", b"\x1bOH", b"\x1b[1~"), b"\x01"),
    **dict.fromkeys((b"\x1b[F", b"\x1bOF", b"\x1b[4~"), b"\x05"),
    b"\x1b[3~": b"\x04",
    b"\x1b\r": b"\n",
}
# Such a key with its modifiers, and with whether it was pressed, repeats or was let go.
_MODIFIED = re.compile(rb"\x1b\[(\d?);(\d{0,4})(?::(\d{1,4}))?([A-Z~])")


class KeyScanner:
    """One terminal's input, cut anywhere.

    `relay_key` is a control byte (0x1d is Ctrl-]), 0 for none; its forms in the kitty keyboard protocol
    (`CSI 93;5u`) and in xterm's modifyOtherKeys (`CSI 27;5;93~`) count as well. Within a bracketed paste
    nothing is a key. `line` is shared by all terminals of a leg.
    """

    __slots__ = (
        "_begun",
        "_marks",
        "_recent",
        "_sieve",
        "answers",
        "bare",
        "cursor_due",
        "held",
        "in_paste",
        "line",
        "relay_key",
    )

    def __init__(self, relay_key: int, line: TypedLine) -> None:
        code = b"%d" % _code(relay_key)
        key = (
            rb"|(?P<key>%b|\x1b\[%b(?::\d*)*;(?P<kitty>\d{1,4})(?::(?P<kind>\d{1,4}))?(?:;[0-9:]*)?u"
            rb"|\x1b\[27;5;%b~)"
        )
        self._marks = re.compile(
            re.escape(PASTE_BEGIN)
            + (key % (re.escape(bytes((relay_key,))), code, code) if relay_key else b"")
        )
        self._recent = b""
        self._begun = b""
        self.in_paste = False
        self.held = b""
        self._sieve: AnswerSieve | None = None
        self.answers = b""
        self.bare = False
        self.cursor_due = 0
        self.line = line
        self.relay_key = relay_key

    def is_plain(self, data: bytes) -> bool:
        """Return whether the data is plain text with nothing unfinished before it, as nearly all input is."""
        return not (self.in_paste or self.held or self._begun or self._sieve or data.strip(_PLAIN))

    def feed(self, data: bytes, *, sift: bool = False) -> tuple[bytes, bytes | None]:
        """Return the bytes to pass on, and `None`; or those before the relay key, and what came after it.

        The relay key itself is not passed on. The start of what may become a key stays in `held`: take it
        with `release` when nothing follows soon. With `sift`, what the terminal answered by itself is not
        among those bytes, but in `answers`; of them, `cursor_due` are expected in a form that is a key's
        otherwise (see `query_answers`). Pastes that begin in `data` lose their marks if `bare` was set.
        """
        found = self._scan(data, sift=sift)
        self.bare = self.bare and self.in_paste
        return found

    def _scan(self, data: bytes, *, sift: bool) -> tuple[bytes, bytes | None]:
        data, self.held = self.held + data, b""
        self.answers = b""
        sieve = self._get_sieve(sift=sift)
        passed, at = [], 0
        while at < len(data):
            if self.in_paste:
                piece, at = self._leave_bare(data, at) if self.bare else self._leave_paste(data, at)
                passed.append(piece)
                continue
            mark = self._mark(data, at)
            if mark is None:
                end = max(at, sieve.find_begun(data)) if sieve else _find_begun(data, at)
                self.held = data[end:]
                passed.append(self._type(data[at:end], sieve))
                break
            passed.append(self._type(data[at : mark.start()], sieve))
            if mark.group() != PASTE_BEGIN:
                return b"".join(passed), data[mark.end() :]
            self.in_paste = True
            self._recent = b""
            self.line.add(PASTE_BEGIN, 0)
            passed.append(b"" if self.bare else PASTE_BEGIN)
            at = mark.end()
        return b"".join(passed), None

    def _get_sieve(self, *, sift: bool) -> "AnswerSieve | None":
        if not sift:
            self._forget_answer()
            return None
        if self._sieve is None:
            self._sieve = AnswerSieve()
        return self._sieve

    def _type(self, data: bytes, sieve: "AnswerSieve | None") -> bytes:
        """Count what of this input, outside of pastes, is to be passed on, and return it."""
        if sieve is not None:
            data, answers, self.cursor_due = sieve.sift(data, self.cursor_due)
            self.answers += answers
        self._count(data)
        return data

    @property
    def answering(self) -> bool:
        """True if a long answer has begun and not ended."""
        return self._sieve is not None and self._sieve.within

    def release(self) -> bytes:
        """Return what was held as nothing followed, such as the Escape key; in a paste, release nothing."""
        self._forget_answer()
        if self.in_paste:
            return b""  # The mark of its end may have begun.
        held, self.held = self.held, b""
        self._count(held)
        return held

    def _forget_answer(self) -> None:
        if self._sieve is not None:
            self._sieve.within = False

    def _mark(self, data: bytes, at: int) -> "re.Match[bytes] | None":
        """Return the next beginning of a paste, or the relay key: pressed, with Ctrl as its only modifier."""
        for mark in self._marks.finditer(data, at):
            if mark.group() == PASTE_BEGIN or mark["kitty"] is None:
                return mark
            if (int(mark["kitty"]) - 1) & ~_LOCKS == _CTRL and mark["kind"] != _RELEASED:
                return mark
        return None

    def _leave_bare(self, data: bytes, at: int) -> tuple[bytes, int]:
        """Return the rest of the paste that goes on at `at`, without its end mark, and where that ends."""
        stop = data.find(PASTE_END, at)
        self.in_paste = stop < 0
        if self.in_paste:
            sizes = range(min(len(PASTE_END) - 1, len(data) - at), -1, -1)
            stop = len(data) - next(size for size in sizes if data.endswith(PASTE_END[:size]))
            self.held = data[stop:]
        # This agent wants no paste marks, but another may.
        self.line.add(data[at:stop] + PASTE_END * (not self.in_paste), stop - at)
        # Without marks a line end would be the Enter key.
        return data[at:stop].translate(_LINE_ENDS), len(data) if self.in_paste else stop + len(PASTE_END)

    def _leave_paste(self, data: bytes, at: int) -> tuple[bytes, int]:
        """Return the rest of the paste that goes on at `at`, and where that ends in `data`."""
        # The end mark may have begun in an earlier read, which was passed on already.
        joined = self._recent + data[at:]
        end = joined.find(PASTE_END)
        if end < 0:
            self.line.add(data[at:], len(data) - at)
            self._recent = joined[-len(PASTE_END) + 1 :]
            return data[at:], len(data)
        self.in_paste = False
        stop = at + end + len(PASTE_END) - len(self._recent)
        # Less than nothing where the mark began earlier: its beginning was counted as text then.
        self.line.add(data[at:stop], stop - at - len(PASTE_END))
        return data[at:stop], stop

    def _count(self, data: bytes) -> None:
        data, self._begun = self._begun + data, b""
        begun = _SEQUENCE_BEGUN.search(data)
        if begun is not None and len(data) - begun.start() < _LONGEST_ANSWER:
            data, self._begun = data[: begun.start()], data[begun.start() :]
        self.line.type(_SEQUENCE.sub(_typed, data))


def _find_begun(data: bytes, at: int) -> int:
    """Return where what may become a key or a paste begins at the end of `data`; its length if nowhere."""
    begun = _BEGUN.search(data, at)
    return begun.start() if begun else len(data)


def _code(relay_key: int) -> int:
    """Return the code of the key that makes this control byte with Ctrl: letters are lower-case."""
    code = relay_key | 0x40
    return code + 0x20 if chr(code).isupper() else code


def _typed(sequence: "re.Match[bytes]") -> bytes:
    """Return the text or control byte that does the same as this key; nothing for other sequences."""
    number = sequence["code"] or sequence["xterm"]
    if number is None:
        return _edited(sequence.group())
    if sequence["kind"] == _RELEASED:
        return b""
    if written := [int(one) for one in (sequence["text"] or b"").split(b":") if one]:
        return _encode(*written)
    modifiers = int(sequence["modifiers"] or sequence["xterm_modifiers"] or b"1") - 1
    return _read_key(int(number), modifiers, int(sequence["shifted"] or b"0"))


def _read_key(number: int, modifiers: int, shifted: int) -> bytes:
    """Return the same for a key of that number, which with Shift is `shifted` if that is not 0."""
    code, held = _KEYPAD.get(number, number), modifiers & ~_LOCKS
    if held == _CTRL and code in _CTRL_KEYS:
        return bytes((code & 0x1F,))
    if code == _ENTER and held in (0, _SHIFT, _ALT):
        # With Shift or Alt it adds a line to what is being typed.
        return b"\n" if held else b"\r"
    if held & ~_SHIFT:
        return b""
    sign = _encode(shifted if held and shifted else code).decode()
    is_upper = bool(held) != bool(modifiers & _CAPS) and len(sign.upper()) == len(sign)
    return (sign.upper() if is_upper else sign).encode()


def _edited(sequence: bytes) -> bytes:
    """Return the control byte that edits the line as this key does; nothing for other sequences."""
    if (key := _MODIFIED.fullmatch(sequence)) is None:
        return _EDITS.get(sequence, b"")
    if (int(key[2] or b"1") - 1) & ~_LOCKS or key[3] == _RELEASED:
        return b""
    return _EDITS.get(b"\x1b[" + key[1] * (key[4] == b"~") + key[4], b"")


def _encode(*codes: int) -> bytes:
    """Return the characters of these codes; nothing for those of keys that write none."""
    return "".join(chr(code) for code in codes if any(code in text for text in _TEXT)).encode()


def is_focus(data: bytes) -> bool:
    """Return whether this only says that the terminal's window got or lost the focus."""
    return _FOCUS.fullmatch(data) is not None


def kitty_key(relay_key: int) -> bytes:
    """Return the relay key in the kitty protocol's form, for a program that asked for that protocol."""
    return b"\x1b[%d;%du" % (_code(relay_key), _CTRL + 1)


# A key is a character, a whole escape sequence, or Escape with what makes it Alt and a key.
_KEY = re.compile(rb"\x1b(?:\[M...|\[[0-?]*[ -/]*[@-~]|O.|[^\[O])|[\xc2-\xf4][\x80-\xbf]{1,3}|.", re.DOTALL)
# What a terminal sends beside keys, in the moment before it is told not to: focus, mouse, and keys let go
# (kitty keyboard protocol). Nobody typed them.
_NOT_TYPED = re.compile(
    rb"\x1b\[(?:[IO]|<[0-9;]{0,32}[Mm]|M...|[0-9:]{0,32};[0-9]{0,4}:3[0-9:;]{0,32}[u~A-S])", re.DOTALL
)
_ESCAPE = re.compile(rb"\x1b(?:\[27(?:;(?:1|65|129|193)?(?::[12])?)?u)?")  # caps and num lock may be on
_PIECE = re.compile(rb"\x1b\[200~.*?(?:\x1b\[201~|\Z)|[^\x00-\x1f\x7f]+|" + _KEY.pattern + rb"|.", re.DOTALL)
_INTERRUPT = b"\x03"
_APART = frozenset({b"\r", _INTERRUPT})
# Agents take an Enter that comes right behind text for a line of a paste. The longest such time is codex's:
# 120 ms (PASTE_ENTER_SUPPRESS_WINDOW of its paste_burst.rs); gemini's is 30 ms (FAST_RETURN_TIMEOUT).
_APART_S = 0.2
_KEYS_S = 0.05
# Pressed twice within a second, Ctrl-C ends claude, codex and gemini; that it was is not known any more.
_INTERRUPTS_S = 1.2


def is_escape(data: bytes) -> bool:
    """Return whether this is the Escape key alone, in either of its forms, and nothing else."""
    return _ESCAPE.fullmatch(data) is not None


def split_keys(data: bytes) -> list[bytes]:
    """Return whole keys, runs of text and whole pastes: the pieces in which a person would have typed it."""
    return _PIECE.findall(data)


def find_pause(before: bytes, after: bytes) -> float:
    """Return how many seconds must pass between these two pieces, so that an agent takes both for keys."""
    if before == after == _INTERRUPT:
        return _INTERRUPTS_S
    return _APART_S if before in _APART or after in _APART else _KEYS_S


class HeldKeys:
    """Keys typed on one terminal and not given to the agent; a paste is kept whole or not at all."""

    __slots__ = ("_data", "_is_refused", "_paste")

    def __init__(self) -> None:
        self._data = bytearray()
        self._paste: bytearray | None = None
        self._is_refused = False

    @property
    def size(self) -> int:
        """Number of bytes that are kept."""
        return len(self._data) + len(self._paste or b"")

    @property
    def is_within(self) -> bool:
        """True if a paste has begun and not ended."""
        return self._paste is not None

    def add(self, data: bytes) -> bool:
        """Keep what was typed next; return whether there was room for all of it.

        The mark of a paste's beginning must arrive whole; the mark of its end may be cut anywhere.
        """
        is_whole = True
        while data:
            if self._paste is None:
                at = data.find(PASTE_BEGIN)
                keys, data = (data, b"") if at < 0 else (data[:at], data[at:])
                is_whole &= self._add_keys(_NOT_TYPED.sub(b"", keys))
                if data:
                    data = data[len(PASTE_BEGIN) :]
                    self._paste, self._is_refused = bytearray(PASTE_BEGIN), False
                    is_whole &= self._check_paste()
            else:
                data, fits = self._add_paste(self._paste, data)
                is_whole &= fits
        return is_whole

    def _add_keys(self, data: bytes) -> bool:
        room, end = MOST_BYTES - len(self._data), 0
        if len(data) > room:
            for key in _KEY.finditer(data):
                if key.end() > room:
                    break
                end = key.end()
            self._data += data[:end]
            return False
        self._data += data
        return True

    def _add_paste(self, paste: bytearray, data: bytes) -> tuple[bytes, bool]:
        """Add to the paste; return what follows it, and whether there is room for all of it so far."""
        begin = max(0, len(paste) - len(PASTE_END) + 1)
        paste += data
        end = paste.find(PASTE_END, begin)
        if end < 0:
            return b"", self._check_paste()
        rest = bytes(paste[end + len(PASTE_END) :])
        del paste[end + len(PASTE_END) :]
        fits = self._check_paste()
        if not self._is_refused:
            self._data += paste
        self._paste = None
        return rest, fits

    def _check_paste(self) -> bool:
        paste = self._paste or bytearray()
        self._is_refused = self._is_refused or self.size > MOST_BYTES
        if self._is_refused:
            # Its end is still looked for, and may have begun.
            del paste[: -len(PASTE_END) + 1]
        return not self._is_refused

    def take(self) -> bytes:
        """Return and clear all that was kept; if a paste continues afterwards, its beginning is included."""
        if self._paste is not None:
            self._data += PASTE_BEGIN if self._is_refused else self._paste
        data = bytes(self._data)
        self._data.clear()
        self._paste = None
        return data
