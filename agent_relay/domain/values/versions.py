"""Compare versions of programs, and find one in what a program says of itself.

Hot commands load this, so it imports nothing.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


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
