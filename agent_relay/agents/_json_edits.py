"""Add items to lists in a JSON text that a person wrote, and take them out again, byte for byte.

Every other byte stays: order, white space, comments. Comments are allowed because some agents allow them.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

# What has no end reaches to the end of the text, so that no place is looked at twice.
_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*+"?|//[^\n]*|/\*(?:[^*]|\*(?!/))*+(?:\*/)?', re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n]*")
_INDENT = 2
_SCANNER = json.JSONDecoder()


class JsonEditError(ValueError):
    """The text cannot be edited; the message says why, for the middle of a sentence."""


class _Element(msgspec.Struct, frozen=True):
    """One member of an object, from its key on, or one item of a list; `value` is where its value begins."""

    begin: int
    value: int
    end: int
    key: str = ""


def read_object(text: str) -> dict[str, object]:
    """Return the object in `text`. Raise JsonEditError if it is torn, or something else."""
    return _read(_blank_comments(text))


def find_list(text: str, keys: Sequence[str]) -> list[object]:
    """Return the list at `keys`; empty if there is none. Raise JsonEditError for something else there."""
    value: object = read_object(text)
    for at, key in enumerate(keys):
        if not isinstance(value, dict):
            raise JsonEditError(f"`{'.'.join(keys[:at])}` in it is not an object")
        if key not in value:
            return []
        value = value[key]
    if not isinstance(value, list):
        raise JsonEditError(f"`{'.'.join(keys)}` in it is not a list")
    return value


def add_item(text: str, keys: Sequence[str], build: Callable[[int], object]) -> str:
    """Return `text` with an item at the end of the list at `keys`.

    The list is made if there is none, like the objects it lies in; `build` gets how many of these had to be
    made. Raise JsonEditError if something else is there.
    """
    find_list(text, keys)
    plain = _blank_comments(text)
    place = _skip(plain, 0)
    for at, key in enumerate(keys):
        found = next((one for one in _list_elements(plain, place) if one.key == key), None)
        if found is None:
            made = len(keys) - at
            value: object = [build(made)]
            for name in reversed(keys[at + 1 :]):
                value = {name: value}
            return _insert(text, plain, place, value, key=key)
        place = found.value
    return _insert(text, plain, place, build(0))


def replace_items(text: str, keys: Sequence[str], change: Callable[[object], object]) -> str:
    """Return `text` with those items of the list at `keys` exchanged of which `change` makes others."""
    for at, item in enumerate(find_list(text, keys)):
        wanted = change(item)
        if wanted == item:
            continue
        plain = _blank_comments(text)
        elements = list(_list_elements(plain, _find_place(plain, keys)))
        indent = _find_indent(text, elements[at].begin)
        text = text[: elements[at].begin] + _render(wanted, text, indent) + text[elements[at].end :]
    return text


def remove_items(text: str, keys: Sequence[str], is_meant: Callable[[object], bool]) -> str:
    """Return `text` without those items of the list at `keys` that are meant."""
    items = find_list(text, keys)
    for at in reversed(range(len(items))):
        if is_meant(items[at]):
            plain = _blank_comments(text)
            text = _remove(text, plain, _find_place(plain, keys), at)
    return text


def remove_empty(text: str, keys: Sequence[str]) -> str:
    """Return `text` without the member at `keys` if that holds nothing, not even a comment."""
    value: object = read_object(text)
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    if value not in ([], {}):
        return text
    plain = _blank_comments(text)
    parent = _find_place(plain, keys[:-1])
    elements = list(_list_elements(plain, parent))
    at = next(number for number, one in enumerate(elements) if one.key == keys[-1])
    held = slice(elements[at].value, elements[at].end)
    return text if text[held] != plain[held] else _remove(text, plain, parent, at)


def _read(plain: str) -> dict[str, object]:
    try:
        found = json.loads(plain, object_pairs_hook=_refuse_twice)
    except json.JSONDecodeError as error:
        raise JsonEditError(f"it is not JSON: {error}") from None
    except RecursionError:
        raise JsonEditError("it is nested too deeply") from None
    if not isinstance(found, dict):
        raise JsonEditError("it does not hold an object")
    return found


def _refuse_twice(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise JsonEditError(f"the key {key[:40]!r} is in it twice")
        found[key] = value
    return found


def _blank_comments(text: str) -> str:
    """Return `text` with blanks in the place of comments, so that every position stays."""

    def blank(match: re.Match[str]) -> str:
        found = match[0]
        if found.startswith("/*") and not found.endswith("*/", 2):
            raise JsonEditError("a comment in it has no end")
        return found if found[0] == '"' else "".join("\n" if one == "\n" else " " for one in found)

    return _COMMENT.sub(blank, text)


def _skip(plain: str, at: int) -> int:
    found = _SPACE.match(plain, at)
    return found.end() if found is not None else at


def _find_place(plain: str, keys: Sequence[str]) -> int:
    place = _skip(plain, 0)
    for key in keys:
        place = next(one.value for one in _list_elements(plain, place) if one.key == key)
    return place


def _list_elements(plain: str, place: int) -> Iterator[_Element]:
    """Yield the elements of the object or list that begins at `place` in a text known to be JSON."""
    is_object = plain[place] == "{"
    at = _skip(plain, place + 1)
    while plain[at] not in "}]":
        begin, key = at, ""
        if is_object:
            found, at = _SCANNER.raw_decode(plain, at)
            key = str(found)
            at = _skip(plain, _skip(plain, at) + 1)
        value = at
        _, end = _SCANNER.raw_decode(plain, at)
        yield _Element(begin, value, end, key)
        at = _skip(plain, end)
        if plain[at] == ",":
            at = _skip(plain, at + 1)


def _insert(text: str, plain: str, place: int, value: object, *, key: str = "") -> str:
    """Return `text` with one more element at the end of the object or list at `place`."""
    named = f"{json.dumps(key)}: " if key else ""
    elements = list(_list_elements(plain, place))
    if not elements:
        # Nothing is laid out, so that what was between the brackets is there again afterwards.
        written = json.dumps(value, ensure_ascii=False)
        return f"{text[: place + 1]}{named}{written}{text[place + 1 :]}"
    gap = plain[place + 1 : elements[0].begin]
    _, line, indent = gap.rpartition("\n")
    end = elements[-1].end
    newline = "\r\n" if "\r\n" in text else "\n"
    lead = f"{newline}{indent}" if line else " "
    written = _render(value, text, indent) if line else json.dumps(value, ensure_ascii=False)
    return f"{text[:end]},{lead}{named}{written}{text[end:]}"


def _render(value: object, text: str, indent: str) -> str:
    unit = "\t" if "\t" in indent else _INDENT
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = json.dumps(value, ensure_ascii=False, indent=unit).split("\n")
    return f"{newline}{indent}".join(lines)


def _find_indent(text: str, begin: int) -> str:
    before = text[text.rfind("\n", 0, begin) + 1 : begin]
    return before if before.isspace() else ""


def _remove(text: str, plain: str, place: int, at: int) -> str:
    """Return `text` without one element, its comma, and the white space that was written with it."""
    elements = list(_list_elements(plain, place))
    one = elements[at]
    if at:
        before = slice(elements[at - 1].end, one.begin)
        if text[before] == plain[before]:
            return text[: before.start] + text[one.end :]
        comma = plain.index(",", before.start)
        return text[:comma] + text[comma + 1 : one.begin] + text[one.end :]
    if len(elements) > 1:
        comma = plain.index(",", one.end)
        after = slice(one.end, elements[1].begin)
        rest = elements[1].begin if text[after] == plain[after] else comma + 1
        return text[: one.begin] + text[rest:]
    closing = _skip(plain, one.end)
    around = (slice(place + 1, one.begin), slice(one.end, closing))
    if place + 1 == one.begin or any(text[each] != plain[each] for each in around):
        return text[: one.begin] + text[one.end :]
    return text[: place + 1] + text[closing:]
