"""Define small values that hot commands need without imports: ULIDs, variables, relay key, versions, paths.

The paths are those of files and folders in a project's `.agent-relay`; nothing is looked at.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

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


LEG_VARIABLE = "AGENT_RELAY_LEG"
"""The leg's id: its processes are found by it."""
TOKEN_VARIABLE = "AGENT_RELAY_LEG_TOKEN"  # noqa: S105 - a variable's name
"""The secret by which an agent proves that it is at work in the leg."""
HOME_VARIABLE = "AGENT_RELAY_HOME"
"""The user's one folder for all that is ours, if they want one: what runs in a leg must find the same."""
RACE_VARIABLE = "AGENT_RELAY_RACE"
"""The race's id, a slash, and the runner's number, of a race's test: its processes are found by it."""
CHECK_VARIABLE = "AGENT_RELAY_CHECK"
"""The handoff's id, of a command that checks a criterion of it: its processes are found by it."""
KEY_VARIABLE = "AGENT_RELAY_AT_KEY"
"""The session whose person has a command run behind the relay key; for that command alone."""


BY_HAND = "stopped by hand"
"""The recorded reason of a session, turn or race that a person stopped."""

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


def is_newer(version: str, than: str) -> bool:
    """Return whether `version` (`1.2.3`, `1.2rc1`) is newer than `than`; false if one is unknown.

    Two pre-releases of the same number count as the same.
    """
    ours, theirs = _parse(version), _parse(than)
    return ours is not None and theirs is not None and ours > theirs


def is_within(version: str, *, start: str, before: str) -> bool:
    """Return whether a version is `start` or newer, and older than `before`; an empty bound is none.

    An unknown version is within no bounds.
    """
    if _parse(version) is None:
        return not start and not before
    return not (start and is_newer(start, version)) and (not before or is_newer(before, version))


def find_newest(versions: "Iterable[str]") -> str:
    """Return the newest of the versions; empty if there is none."""
    newest = ""
    for version in versions:
        if not newest or is_newer(version, newest):
            newest = version
    return newest


def find_number(said: str) -> str:
    """Return the version in what a program says of itself (`2.1.330 (Claude Code)`, `codex-cli v0.169.0`).

    It is the first word that begins with two numbers and a point between them; empty where there is none.
    """
    for word in said.split():
        version = word.lstrip("v").rstrip(",;:)")
        first, _, rest = version.partition(".")
        if first.isascii() and first.isdigit() and rest[:1].isascii() and rest[:1].isdigit():
            return version
    return ""


def _parse(version: str) -> tuple[list[int], bool] | None:
    """Return the numbers without zeros at their end, and whether it is final; `None` if it has none."""
    numbers: list[int] = []
    is_final = True
    for part in version.split("+", 1)[0].split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if digits:
            numbers.append(int(digits))
        if digits != part:
            is_final = part.startswith("post")
            break
    if not numbers:
        return None
    while numbers and not numbers[-1]:
        numbers.pop()
    return numbers, is_final


FOLDER = ".agent-relay"
SESSIONS = "sessions"
RESUME = "resume"
JOURNAL = "journal.jsonl"
CHECKPOINTS = "checkpoints.jsonl"
_BELOW_ROOT = f"/{FOLDER}/{SESSIONS}/"


def get_project_folder(root: str) -> str:
    """Return relay's folder in the project at `root`."""
    return f"{root}{FOLDER}" if root in ("", "/") else f"{root}/{FOLDER}"


def get_sessions_folder(root: str) -> str:
    """Return the folder that holds the project's sessions."""
    return f"{get_project_folder(root)}/{SESSIONS}"


def get_session_folder(root: str, session: str) -> str:
    """Return the session's folder."""
    return f"{get_sessions_folder(root)}/{session}"


def get_journal_path(root: str, session: str) -> str:
    """Return the path of the session's journal."""
    return f"{get_session_folder(root, session)}/{JOURNAL}"


def get_resume_folder(session_folder: str) -> str:
    """Return the folder of the session's packets."""
    return f"{session_folder}/{RESUME}"


def find_root_above(path: str) -> str:
    """Return the root of the project in which `path` is, or is in, a session's folder; empty for none."""
    root, found, _ = path.partition(_BELOW_ROOT)
    return (root or "/") if found else ""


IMPORTED = "imported"
"""The agent of the first leg of an imported session in its journal: no adapter has this name."""
