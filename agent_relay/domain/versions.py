"""Which of two of our versions is the newer one. Hot commands load this, so it loads nothing."""


def is_newer(version: str, than: str) -> bool:
    """Return whether `version` (`1.2.3`, `1.2rc1`) is newer than `than`; false where one is unknown.

    Two of the same number that are both not final count as the same.
    """
    ours, theirs = _parse(version), _parse(than)
    return ours is not None and theirs is not None and ours > theirs


def _parse(version: str) -> tuple[list[int], bool] | None:
    """Return the numbers without zeros at their end, and whether it is final; `None` where it has none."""
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
