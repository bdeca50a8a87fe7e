"""What of a name leaves this machine: nothing that is a path, or that is no name at all."""

import re

OTHER = "other"
"""Instead of a name that has none of the shapes."""
_UNKNOWN = "unknown"
_MOST = 80
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ._:+()-]*[A-Za-z0-9)])?")
_PARTS = re.compile(r"[/\\]|%2f|%5c", re.IGNORECASE)
_CODE = re.compile(r"[A-Za-z0-9-](?:[A-Za-z0-9._:+-]{0,79})")


def shorten_path(name: str) -> str:
    r"""The last part of a name that may be a path, as that of a local model is; the name itself otherwise.

    `/home/ann/models/llama.gguf` and `C:\models\llama.gguf` become `llama.gguf`, `maker/model` `model`.
    Of an address it is nothing where there is nothing behind its host.
    """
    scheme, mark, rest = name.partition("://")
    parts = _PARTS.split(rest if mark else scheme)
    return "" if mark and len(parts) == 1 else parts[-1]


def label(name: str) -> str:
    """What is short and has the shape of a name as it is, else `other`; `unknown` for none."""
    cut = name[:_MOST].rstrip()
    if not cut:
        return _UNKNOWN
    return cut if _NAME.fullmatch(cut) else OTHER


def is_code(text: str) -> bool:
    """Whether it is a code, a name or a moment: nobody's words, and no path."""
    return _CODE.fullmatch(text) is not None
