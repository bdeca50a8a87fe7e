"""The pydantic bases of packets, and of what is printed for programs."""

from typing import TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter

_Kind = TypeVar("_Kind")


class Document(BaseModel):
    """A frozen model that carries fields of newer versions untouched."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)


class Printed(BaseModel):
    """A frozen model of what programs are sent; later versions may add fields, none is removed."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)


def build_schema(printed: TypeAdapter[_Kind], title: str) -> dict[str, object]:
    """Build the published JSON Schema of what is printed."""
    schema: dict[str, object] = printed.json_schema(mode="serialization")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title} | schema
