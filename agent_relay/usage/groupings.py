"""Name what the rows of metrics can stand for; kept apart because `aggregation` is slow to load."""

from typing import Literal, get_args

Grouping = Literal["session", "leg", "agent", "model", "day"]
GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)
