"""The base of documents that people write by hand, as TOML, and the place of a mistake in one."""

import re
from collections.abc import Mapping
from enum import Enum
from types import NoneType
from typing import Annotated, Literal, Self, get_args, get_origin, get_type_hints

import msgspec

_MISTAKE = re.compile(r"(?P<what>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>[^`]*)`)?", re.DOTALL)
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]|\[\.\.\.\]")
_BOUND = re.compile(r"Expected `(?:int|float|decimal)(?: \| null)?` (?P<how><=|>=|<|>) (?P<much>\S+)")
_LENGTH = re.compile(r"Expected `(?:str|array)(?: \| null)?` of length (?P<how><=|>=|<|>) (?P<much>\S+)")
_BOUNDS = {"<=": "at most", ">=": "at least", "<": "less than", ">": "more than"}
_KINDS = re.compile(r"Expected `(?P<wanted>[a-z |]+)`, got `(?P<got>[a-z]+)`")
_KIND_WORDS = {
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "decimal": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}
_NAMED = re.compile(r"Object (?P<what>contains unknown|missing required) field `(?P<key>.*)`", re.DOTALL)


class MistakeError(ValueError):
    """The first mistake in a document: the keys that lead to it, with dots between them, and what it is."""

    def __init__(self, message: str, *, key: str = "") -> None:
        super().__init__(f"{key}: {message}" if key else message)
        self.key = key
        self.message = message


class Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A frozen table that people write by hand: a misspelt key is an error, not silence.

    Made in code, its values are taken as they are; `parse` checks them.
    """

    @classmethod
    def parse(cls, tables: Mapping[str, object]) -> Self:
        """Return the document in `tables`. Raise MistakeError.

        Numbers and booleans may be in quotation marks.
        """
        try:
            return msgspec.convert(tables, cls, strict=False)
        except msgspec.ValidationError as error:
            raise _find_mistake(error, tables, cls) from None


def _find_mistake(error: msgspec.ValidationError, tables: object, kind: object) -> MistakeError:
    found = _MISTAKE.fullmatch(str(error))
    what, path = (found["what"], found["path"] or "") if found else (str(error), "")
    keys, kind = _follow(path, tables, kind)
    own = error.__cause__
    if isinstance(own, MistakeError):
        return MistakeError(own.message, key=".".join([*keys, *([own.key] if own.key else [])]))
    if own is None:
        if found and found["key"]:
            kind = _get_arguments(kind)[0]
        what, more = _render(what, kind)
        keys += more
    return MistakeError(what, key=".".join(keys))


def _render(what: str, kind: object) -> tuple[str, list[str]]:
    """Return in plain words what is wrong with a value of this kind, and the key inside it that is meant."""
    if named := _NAMED.fullmatch(what):
        is_unknown = named["what"].startswith("contains")
        return ("there is no setting of this name" if is_unknown else "it is missing"), [named["key"]]
    if what.startswith("Invalid enum value"):
        return f"it must be {_list_words(kind)}", []
    if bound := _BOUND.fullmatch(what):
        return f"it must be {_BOUNDS[bound['how']]} {bound['much'].removesuffix('.0')}", []
    if bound := _LENGTH.fullmatch(what):
        return f"its length must be {_BOUNDS[bound['how']]} {bound['much']}", []
    if kinds := _KINDS.fullmatch(what):
        wanted = [_KIND_WORDS.get(one, one) for one in kinds["wanted"].split(" | ") if one != "null"]
        return f"it must be {' or '.join(wanted)}, not {_KIND_WORDS.get(kinds['got'], kinds['got'])}", []
    return what[:1].lower() + what[1:], []


def _list_words(kind: object) -> str:
    words: list[str] = []
    for one in _list_kinds(kind):
        if isinstance(one, type) and issubclass(one, Enum):
            words += [f'"{member.value}"' for member in one]
        elif one is bool:
            words += ["true", "false"]
        elif get_origin(one) is Literal:
            words += [f'"{word}"' for word in get_args(one)]
    return f"{', '.join(words[:-1])} or {words[-1]}" if len(words) > 1 else "".join(words)


def _follow(path: str, value: object, kind: object) -> tuple[list[str], object]:
    """Return the keys that the path leads through, and the type of what stands at its end."""
    keys: list[str] = []
    for step in _STEP.finditer(path):
        name, number = step.groups()
        if name is not None:
            keys.append(name)
            value = value.get(name) if isinstance(value, Mapping) else None
            kind = _get_field(kind, name)
        elif number is not None:
            keys.append(number)
            value = value[int(number)] if isinstance(value, list | tuple) else None
            kind = _get_arguments(kind)[0]
        else:
            kind = _get_arguments(kind)[-1]
            key, value = _find_entry(value, kind)
            keys.append(key)
    return keys, kind


def _find_entry(value: object, kind: object) -> tuple[str, object]:
    """Return the first entry of a table whose value is not of this kind: the path does not name its key."""
    for key, one in value.items() if isinstance(value, Mapping) else ():
        try:
            msgspec.convert(one, kind, strict=False)
        except msgspec.ValidationError:
            return str(key), one
    return "", None


def _list_kinds(kind: object) -> list[object]:
    """Return the types a value may have, without its constraints and without nothing at all."""
    if get_origin(kind) is Annotated:
        return _list_kinds(get_args(kind)[0])
    if get_origin(kind) is Literal or not get_args(kind) or get_origin(kind) in {tuple, dict}:
        return [kind]
    return [inner for one in get_args(kind) if one is not NoneType for inner in _list_kinds(one)]


def _get_arguments(kind: object) -> tuple[object, ...]:
    """Return the types of what stands in a list or a table."""
    return next((get_args(one) for one in _list_kinds(kind) if get_args(one)), (object,))


def _get_field(kind: object, name: str) -> object:
    for one in _list_kinds(kind):
        if isinstance(one, type) and issubclass(one, msgspec.Struct):
            fields = zip(one.__struct_encode_fields__, one.__struct_fields__, strict=True)
            return get_type_hints(one, include_extras=True).get(dict(fields).get(name, ""), object)
    return object
