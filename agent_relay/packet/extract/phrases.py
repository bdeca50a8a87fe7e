"""Look up the expressions of `phrases.toml`, the phrases by which a text shows what it says."""

import pkgutil
import re
import tomllib
from functools import cache
from typing import Literal

from agent_relay.domain.documents.document import Strict
from agent_relay.domain.text.plain import compile_late

_FILE = "phrases.toml"
_APOSTROPHES = str.maketrans({"\u2019": "'", "\u02bc": "'"})
_PART = re.compile(r"<([a-z]+)>")


def plain_apostrophes(text: str) -> str:
    """Replace every apostrophe in `text` by the plain one, which the phrases use."""
    return text.translate(_APOSTROPHES)


class PhraseGroup(Strict):
    """One table of `phrases.toml`, whose head says what its keys mean."""

    accepts: tuple[str, ...]
    rejects: tuple[str, ...]
    words: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    before: str = r"\b"
    after: str = r"(?!\w)"
    at: Literal["anywhere", "start", "whole"] = "anywhere"
    ignores_case: bool = True
    by_line: bool = False

    @property
    def expression(self) -> str:
        """The group as one regular expression, the names of parts still in it."""
        words = [f"{self.before}(?:{'|'.join(self.words)}){self.after}"] if self.words else []
        return "|".join([*words, *self.patterns])

    @property
    def flags(self) -> re.RegexFlag:
        """The flags to compile the expression with."""
        case = re.IGNORECASE if self.ignores_case else re.NOFLAG
        return case | (re.MULTILINE if self.by_line else re.NOFLAG)


@cache
def get_phrases(name: str) -> re.Pattern[str]:
    """Return the expression of the group `name`, compiled on first use; raise KeyError if unknown."""
    groups, parts = read_phrases()
    group = groups[name]
    expression = _PART.sub(lambda part: parts.get(part[1], part[0]), group.expression)
    return compile_late(expression, group.flags)


@cache
def read_phrases() -> tuple[dict[str, PhraseGroup], dict[str, str]]:
    """Read the groups by name, and the expressions of the parts that they name.

    The file is read when this module's users are imported, as if it were a module (docs/adr/0059); raise
    ImportError if it is missing or broken.
    """
    try:
        data = pkgutil.get_data(__package__, _FILE) or b""
        tables = tomllib.loads(data.decode())
        parts = {name: f"(?:{'|'.join(words)})" for name, words in tables.pop("parts").items()}
        return {name: PhraseGroup.model_validate(table) for name, table in tables.items()}, parts
    except (OSError, ValueError) as problem:
        raise ImportError(f"{_FILE} of {__package__} cannot be read: {problem}") from problem
