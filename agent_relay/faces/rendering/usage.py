"""What a turn took, on one line."""

from collections.abc import Mapping


class Usage:
    """Sums what the agents of one turn say of their requests; unknown is not zero.

    What goes in is left to the metrics: agents count what they had cached differently.
    """

    def __init__(self) -> None:
        self._output: int | None = None
        self._cost: float | None = None

    def add(self, event: Mapping[str, object]) -> None:
        """One more saying of an agent."""
        tokens, cost = event.get("tokens"), event.get("cost")
        output = tokens.get("output") if isinstance(tokens, dict) else None
        if isinstance(output, int):
            self._output = (self._output or 0) + output
        if isinstance(cost, int | float):
            self._cost = (self._cost or 0.0) + cost

    def describe(self) -> str:
        """Tokens and US dollars, as far as they were told; empty where nothing was."""
        tokens = f"{self._output:,} tokens out" if self._output is not None else ""
        cost = f"${self._cost:.4f}" if self._cost is not None else ""
        return " · ".join(part for part in (tokens, cost) if part)
