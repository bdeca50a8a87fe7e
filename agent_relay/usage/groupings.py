"""List the groupings of metrics, the values of `--by`; kept apart because `aggregation` loads slowly."""

from typing import Literal, get_args

Grouping = Literal["session", "leg", "agent", "model", "day"]
GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)
