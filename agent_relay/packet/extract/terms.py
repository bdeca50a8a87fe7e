"""List the terms of a text, to find what two texts share, in scripts with spaces and without.

In scripts without spaces, each pair of neighbouring characters counts as a term. `recall` has its own terms,
because it weighs those of a question and counts them in megabytes of text.
"""

from collections.abc import Iterable, Iterator

from agent_relay.domain.text.plain import compile_late

WIDE = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]"
"""An expression for a character of a script without spaces; Korean has spaces, but long words."""
_RUN = compile_late(f"{WIDE}+")
_WORD = compile_late(r"\w+")
_LONG_WORD = compile_late(r"[^\W_]{3,}")
# Words shorter than the first number say little; of longer ones the stem is compared, as endings differ.
_LEAST_LETTERS, _STEM = 4, 5
_LONGEST = 4000
"""The number of characters of a text that are read."""


def list_words(text: str) -> set[str]:
    """List the whole words of a text and its character pairs, ignoring case.

    Use it to compare two speakers, who call a thing by the same name.
    """
    folded = text[:_LONGEST].casefold()
    words = {word for word in _LONG_WORD.findall(folded) if not _RUN.search(word)}
    return words | {pair for pair in _iterate_pairs(folded) if len(pair) > 1}


def list_stems(texts: Iterable[str]) -> set[str]:
    """List the stems, numbers and character pairs of several texts, ignoring case.

    Use it to recognise a paraphrase, in which words have other endings.
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
    """Yield the pairs of neighbouring characters; a single character as itself."""
    for run in _RUN.findall(folded):
        yield from (run[at : at + 2] for at in range(max(1, len(run) - 1)))
