"""Read TOML files written by hand: into a model, or into an error that names file and key."""

import tomllib
from collections.abc import Callable
from typing import TypeVar

from pydantic import ValidationError

from agent_relay.domain.documents.document import Strict
from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.system.disk.files import read_bounded

LIMIT_BYTES = 1 << 20
Model = TypeVar("Model", bound=Strict)


def read_toml(path: str) -> dict[str, object]:
    """Read the tables of a TOML file.

    Raise FileNotFoundError if there is none, ConfigurationError if it is not TOML in UTF-8.
    """
    return parse_toml(read_text(path), path)


def read_text(path: str) -> str:
    """Read a text file. Raise FileNotFoundError if there is none, ConfigurationError if it is unreadable.

    Unreadable is also what is not UTF-8.
    """
    try:
        return read_bounded(path, limit_bytes=LIMIT_BYTES).decode()
    except UnicodeDecodeError:
        raise ConfigurationError(f"{path} is not UTF-8 text") from None
    except RelayError as error:
        raise ConfigurationError(error.sentence, hint=error.hint) from error


def parse_toml(text: str, path: str) -> dict[str, object]:
    """Return the tables of `text`, the contents of `path`. Raise ConfigurationError if it is not TOML."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        hint = "How TOML is written: https://toml.io"
        raise ConfigurationError(f"{path} is not TOML: {error}", hint=hint) from None
    except ValueError as error:  # a number of thousands of digits
        raise ConfigurationError(f"{path} cannot be read: {error}") from None
    except RecursionError:
        raise ConfigurationError(
            f"{path} cannot be read: its lists or tables are nested too deeply",
            hint="Write it with fewer of them.",
        ) from None


def _find_adapter_page(_table: str) -> str:
    return "adapters"


def parse_document(
    tables: dict[str, object],
    model: type[Model],
    path: str,
    find_page: Callable[[str], str] = _find_adapter_page,
) -> Model:
    """Validate the tables as a `model`.

    Raise ConfigurationError naming `path`, the first invalid key, and the page that describes its table.
    """
    try:
        return model.model_validate(tables)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"]) or "the file as a whole"
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            message = "there is no setting of this name"
        hint = f"See docs/{find_page(key.partition('.')[0])}.md."
        raise ConfigurationError(f"{path}: {key}: {message}", hint=hint) from None
