"""The relay key as people write it, and the byte a terminal sends for it."""

DEFAULT_RELAY_KEY = "ctrl-]"

_PREFIX = "ctrl-"
_TAKEN = {
    "c": "interrupts",
    "i": "is Tab",
    "j": "is Enter",
    "m": "is Enter",
    "[": "is Escape",
    "z": "suspends",
    "@": "is the byte 0, which means no key here",
}
_LOWEST, _HIGHEST = 0x40, 0x5F


def name_relay_key(code: int) -> str:
    """Return the name by which texts call the key of this control byte: `Ctrl-]`; empty for none, 0."""
    return f"Ctrl-{chr(code + _LOWEST)}" if code else ""


def parse_relay_key(text: str) -> int:
    """Parse a key written `ctrl-]` into its control byte (1-31).

    Raises ValueError for anything but Ctrl with one character that terminals send as its own byte, and
    for the keys without which no terminal program can be used.
    """
    key = text.strip().lower()
    letter = key.removeprefix(_PREFIX)
    if letter == key or len(letter) != 1 or not _LOWEST <= ord(letter.upper()) <= _HIGHEST:
        raise ValueError(f"{text!r} is not a key like {DEFAULT_RELAY_KEY!r}")
    if letter in _TAKEN:
        raise ValueError(f"{text!r} {_TAKEN[letter]}; choose another key")
    return ord(letter.upper()) - _LOWEST
