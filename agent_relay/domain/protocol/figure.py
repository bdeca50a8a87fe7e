"""One exported metric with its values by labels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge"]
Labels = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """One metric: `values` by the values of its `labels`."""

    name: str
    kind: Kind
    about: str
    labels: Labels
    values: Mapping[Labels, float]
    unit: str = ""
