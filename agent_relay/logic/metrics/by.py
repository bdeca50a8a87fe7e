"""What the rows of a table of metrics can stand for; apart from what makes them, which is dear to load."""

from typing import Literal, get_args

By = Literal["session", "leg", "agent", "model", "day"]
KNOWN: tuple[By, ...] = get_args(By)
