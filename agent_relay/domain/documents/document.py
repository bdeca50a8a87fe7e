"""The pydantic bases of everything we store or read as a document."""

from pydantic import BaseModel, ConfigDict


class Document(BaseModel):
    """A frozen model that carries fields of newer versions untouched."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)


class Strict(BaseModel):
    """A frozen model for what people write by hand: a misspelt key is an error, not silence."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
