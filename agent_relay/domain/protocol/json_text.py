"""Read and write JSON as we send and store it: strict in reading, one line of ASCII in writing."""

import json

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import NoReturn


def parse_json(text: str | bytes) -> object:
    """Parse one JSON document; raise ValueError or RecursionError if it is not one, or holds NaN."""
    return _DECODER.decode(text if isinstance(text, str) else text.decode())


def parse_line(line: bytes) -> object:
    """Parse one line of a journal; raise as `parse_json` does.

    Half a surrogate pair, which no text and no file name can hold, becomes U+FFFD. The halves Python
    uses for the bytes of a name that is not UTF-8 (U+DC80 to U+DCFF) stay.
    """
    value = parse_json(line)
    return _mend(value) if b"\\ud" in line or b"\\uD" in line else value


def _mend(value: object) -> object:
    if isinstance(value, str):
        return "".join(_replace_half(character) for character in value)
    if isinstance(value, list):
        return [_mend(one) for one in value]
    if isinstance(value, dict):
        return {name: _mend(one) for name, one in value.items()}
    return value


def _replace_half(character: str) -> str:
    is_half = "\ud800" <= character <= "\udfff" and not "\udc80" <= character <= "\udcff"
    return "\ufffd" if is_half else character


def render_json(value: object) -> str:
    """Render the value as JSON without spaces, in ASCII, lone surrogates escaped.

    Raises TypeError, ValueError or RecursionError for what JSON cannot express, NaN included.
    """
    return _ENCODER.encode(value)


def _refuse_constant(_name: str) -> "NoReturn":
    raise ValueError("JSON has no NaN and no infinity")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
