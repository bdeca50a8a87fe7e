"""Read and write JSON as we send and store it, with Python's C reader and writer alone.

`import json` loads `re` and `enum` as well, and two bars of `make bench` fail with it: connecting costs 2.0
of a bare Python (bar 1.8), attaching 2.6 (bar 2.5). Where this Python has no such C functions, or others,
`json` itself is used. A test compares the two.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def parse_json(text: "str | bytes") -> object:
    """Parse one JSON document; raise ValueError or RecursionError if it is not one."""
    if not isinstance(text, str):
        text = str(text, "utf-8")
    text = text.strip(" \t\n\r")
    value, end = _scan(text, 0)
    if end != len(text):
        raise ValueError("something follows the JSON document")
    return value


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
    return _write(value)


class _Reading:
    """The settings the accelerator reads; the defaults of `json.loads`, except that NaN is refused."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    array_hook = None
    parse_float = float
    parse_int = int

    @staticmethod
    def parse_constant(_name: str) -> object:
        raise ValueError("JSON has no NaN and no infinity")


def _refuse(value: object) -> object:
    raise TypeError(f"JSON has no {type(value).__name__}")


def _build() -> "tuple[Callable[[str, int], tuple[object, int]], Callable[[object], str]]":
    try:
        from _json import encode_basestring_ascii, make_encoder, make_scanner

        scanner = make_scanner(_Reading)  # type: ignore[arg-type]  # takes whatever has these attributes
        encoder = make_encoder(None, _refuse, encode_basestring_ascii, None, ":", ",", False, False, False)
        scanner('{"a":[1.5,null]}', 0)
        encoder({"a": [1.5, None]}, 0)
    except (ImportError, AttributeError, TypeError):
        return _build_slow()

    def scan(text: str, start: int) -> tuple[object, int]:
        try:
            return scanner(text, start)
        except (StopIteration, SystemError):
            # Without the module `json`, the accelerator finds no error of its own to raise.
            raise ValueError("not a JSON document") from None

    def write(value: object) -> str:
        return "".join(encoder(value, 0))

    return scan, write


def _build_slow() -> "tuple[Callable[[str, int], tuple[object, int]], Callable[[object], str]]":
    import json

    decoder = json.JSONDecoder(parse_constant=_Reading.parse_constant)

    def write(value: object) -> str:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)

    return decoder.raw_decode, write


_scan, _write = _build()
