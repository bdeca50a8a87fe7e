"""The sortable identifier of sessions and legs.

Hot commands load this, so it does without `typing`, which `ids` needs.
"""

_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_ULID_LENGTH = 26


def build_ulid(at_ms: int, randomness: bytes) -> str:
    """Build a ULID of 26 characters: `at_ms` since the epoch (48 bits), then 10 bytes of `randomness`.

    Sorts by time. Raises ValueError if the time does not fit or the randomness is not 10 bytes.
    """
    if not 0 <= at_ms < 1 << 48 or len(randomness) != 10:  # noqa: PLR2004 - the ULID's own layout
        raise ValueError("a ULID takes 48 bits of time and 10 bytes of randomness")
    number = at_ms << 80 | int.from_bytes(randomness, "big")
    return "".join(_CROCKFORD[number >> shift & 31] for shift in range(125, -1, -5))


def read_moment_ms(ulid: str) -> int:
    """Return the milliseconds since the epoch a ULID was built at; raise ValueError if it is none."""
    if not is_ulid(ulid):
        raise ValueError("no ULID")
    number = 0
    for character in ulid[:10]:
        number = number << 5 | _CROCKFORD.index(character)
    return number


def is_ulid(text: str) -> bool:
    """Return whether `text` could name a session or leg: safe as a file name, whatever a peer sent."""
    return len(text) == _ULID_LENGTH and all(character in _CROCKFORD for character in text)
