"""List the terms of a text, to tell what two texts share, in scripts with blanks and without.

Scripts without blanks have no words to be found: there each pair of neighbouring signs counts as one.
`recall` has terms of its own: it weighs what a question asks for, and counts it in megabytes.
"""

from collections.abc import Iterable, Iterator

from agent_relay.domain.text.plain import compile_late

WIDE = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
"""A sign of a script without blanks between words, as an expression; Korean has blanks, and long words."""
_RUN = compile_late(f"{WIDE}+")
_WORD = compile_late(r"\w+")
_LONG_WORD = compile_late(r"[^\W_]{3,}")
# Beginnings of words: shorter words say little; of longer ones so much is compared, as endings differ.
_LEAST_LETTERS, _STEM = 4, 5
_LONGEST = 4000
"""Characters of a text whose words are listed."""


def list_words(text: str) -> set[str]:
    """List the words of a text, whole, and its pairs of signs; case aside.

    For what two people say of one thing, which they call by the same name.
    """
    folded = text[:_LONGEST].casefold()
    words = {word for word in _LONG_WORD.findall(folded) if not _RUN.search(word)}
    return words | {pair for pair in _iterate_pairs(folded) if len(pair) > 1}


def list_stems(texts: Iterable[str]) -> set[str]:
    """List the beginnings of words, the numbers and the pairs of signs of several texts; case aside.

    For who says the same again in a sentence of their own, with other endings.
    """
    found: set[str] = set()
    for text in texts:
        folded = text.casefold()
        found.update(_iterate_pairs(folded))
        for word in _WORD.findall(_RUN.sub(" ", folded)):
            if word[0].isdigit() or len(word) >= _LEAST_LETTERS:
                found.add(word if word[0].isdigit() else word[:_STEM])
    return found


def _iterate_pairs(folded: str) -> Iterator[str]:
    """Yield the pairs of signs written without blanks; a sign between blanks as itself."""
    for run in _RUN.findall(folded):
        yield from (run[at : at + 2] for at in range(max(1, len(run) - 1)))
