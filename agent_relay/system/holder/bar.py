"""The bar as it is set: what it says, and whether what is typed below it is held."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_TEXTS = 8
LONGEST_TEXT = 2000


class Bar:
    """`texts` say the same in falling length; with `holds_keys` the agent is not given what is typed."""

    __slots__ = ("holds_keys", "texts")

    def __init__(self, texts: "Sequence[str]", *, holds_keys: bool) -> None:
        self.texts = [text[:LONGEST_TEXT] for text in texts[:MOST_TEXTS]]
        self.holds_keys = holds_keys
