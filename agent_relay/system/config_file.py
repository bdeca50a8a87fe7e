"""Read, edit and reload TOML files written by hand, and gather the secrets that lie beside them.

An edit leaves every other line as it was.
"""

import contextlib
import json
import logging
import os
import re
import stat
import threading
import tomllib
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from agent_relay.domain.documents.config import ProjectConfig, UserConfig
from agent_relay.domain.documents.handwritten import MistakeError, Strict
from agent_relay.domain.errors import ConfigurationError, RelayError
from agent_relay.domain.names import get_project_folder
from agent_relay.redact.known_values import collect_known, parse_settings
from agent_relay.system.disk.files import read_bounded, write_atomic
from agent_relay.system.disk.folders import ensure_private
from agent_relay.system.disk.locks import lock_folder
from agent_relay.system.failures import find_passing
from agent_relay.system.pattern_cost import refuse_slow

_log = logging.getLogger(__name__)

LIMIT_BYTES = 1 << 20
Model = TypeVar("Model", bound=Strict)
# The first conversion into a type has msgspec study it, and two threads that do so at once crash the process.
_ONE_AT_A_TIME = threading.Lock()


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


def parse_document(
    tables: dict[str, object],
    model: type[Model],
    path: str,
    find_page: Callable[[str], str] = lambda _table: "adapters",
) -> Model:
    """Validate the tables as a `model`.

    Raise ConfigurationError naming `path`, the first invalid key, and the page that describes its table.
    """
    try:
        with _ONE_AT_A_TIME:
            return model.parse(tables)
    except MistakeError as error:
        hint = f"See docs/{find_page(error.key.partition('.')[0])}.md."
        key = error.key or "the file as a whole"
        raise ConfigurationError(f"{path}: {key}: {error.message}", hint=hint) from None


FILE_NAME = "config.toml"
_PAGES = {
    "budgets": "budgets", "context": "context", "export": "exporters", "handoff": "context",
    "redaction": "packet-format",
}  # fmt: skip
"""The page of the documentation for a table; all other tables are on the page `config`."""
_AGENT_NAME = re.compile(r"[a-z][a-z0-9-]*")
_VALUE = r"[ \t]*(?:\[[^\]]*\][ \t]*(?:#[^\n]*)?|[^\[\n][^\n]*)"
"""A list, over several lines too, or what stands on one line; with a comment behind it."""
_HEADER = re.compile(r"^[ \t]*\[")
_MODEL = re.compile(r"^[ \t]*model[ \t]*=")


def parse_user_config(tables: dict[str, object], path: str) -> UserConfig:
    """Parse the user's configuration; raise ConfigurationError naming `path` and key, or a slow pattern."""
    config = parse_document(tables, UserConfig, path, _find_page)
    for pattern in config.redaction.allow_patterns:
        refuse_slow(pattern, f"{path}: redaction.allow_patterns", hint="Shorten it, or name texts in: allow")
    return config


def read_user_config(folder: str) -> UserConfig:
    """Read the user's configuration from `<folder>/config.toml`; return the defaults if there is no file.

    Raise ConfigurationError naming file and key.
    """
    path = os.path.join(folder, FILE_NAME)
    try:
        return parse_user_config(read_toml(path), path)
    except FileNotFoundError:
        return UserConfig()


def read_project_config(root: str) -> ProjectConfig:
    """Read `<root>/.agent-relay/config.toml`; return an empty configuration if there is no file.

    Raise ConfigurationError naming file and key, also for keys only the user may set.
    """
    path = f"{get_project_folder(root)}/{FILE_NAME}"
    try:
        return parse_document(read_toml(path), ProjectConfig, path, _find_page)
    except FileNotFoundError:
        return ProjectConfig()


@contextlib.contextmanager
def open_for_edit(folder: str) -> Iterator[str]:
    """Yield the path of the user's `config.toml`, locked against other commands of ours.

    Raise RelayError if another command holds the lock for too long, ConfigurationError if the folder cannot
    be used.
    """
    ensure_private(folder)
    path = os.path.join(folder, FILE_NAME)
    try:
        with lock_folder(folder, f"another command is changing {path}"):
            yield path
    except OSError as error:
        raise ConfigurationError(f"cannot edit {path}: {error.strerror}") from error


def write_config(path: str, text: str, *, before: str) -> None:
    """Write `text` as the user's configuration: to a file at `path`, or to the target of a link there.

    A user who keeps the file elsewhere (in a repository of such files, say) goes on having it there; its mode
    is kept. Raise ConfigurationError if a link leads to no file, or if the file no longer contains `before`,
    on which the change is based; RelayError if it cannot be written.
    """
    if not os.path.lexists(path):
        if before:
            raise _tell_changed(path)
        write_atomic(path, text.encode())
        return
    target, mode = _find_target(path)
    if read_text(target) != before:
        raise _tell_changed(path)
    write_atomic(target, text.encode(), mode=mode)


def read_edited(path: str) -> str:
    """Read the user's configuration before an edit; empty if there is none. Raise ConfigurationError."""
    if os.path.islink(path) and os.path.exists(path):
        _find_target(path)
    try:
        return read_text(path)
    except FileNotFoundError:
        return ""


def _find_target(path: str) -> tuple[str, int]:
    """Return the file at `path`, links followed, and its mode. Raise ConfigurationError if there is none."""
    try:
        target = os.path.realpath(path, strict=True)
        found = os.stat(target)
    except OSError as error:
        raise ConfigurationError(
            f"cannot edit {path}: the link leads nowhere ({error.strerror})",
            hint="Make the file it names, or remove the link.",
        ) from error
    if not stat.S_ISREG(found.st_mode):
        raise ConfigurationError(f"cannot edit {path}: it is a link to {target}, which is not a file")
    return target, stat.S_IMODE(found.st_mode)


def _tell_changed(path: str) -> ConfigurationError:
    return ConfigurationError(
        f"cannot edit {path}: it was changed just now", hint="Nothing was written. Try again."
    )


def create_config(folder: str, text: str) -> bool:
    """Write `text` as `config.toml` if there is none; return whether it did. Raise RelayError if it fails."""
    with open_for_edit(folder) as path:
        is_missing = not os.path.lexists(path)
        if is_missing:
            write_atomic(path, text.encode())
        return is_missing


def write_order(folder: str, order: tuple[str, ...]) -> None:
    """Set `order` in the user's `config.toml`. Raise ConfigurationError if it cannot be edited safely."""
    for name in order:
        if not _AGENT_NAME.fullmatch(name):
            raise ConfigurationError(f"{name!r} is not an agent's name")
    _set_key(folder, "order", list(order))


def write_resume(folder: str) -> None:
    """Set `resume_at_reset`: from now on, if every agent rests, work resumes by itself at the first reset.

    Raise ConfigurationError if the file cannot be parsed or edited safely.
    """
    _set_key(folder, "resume_at_reset", True)


def _set_key(folder: str, key: str, value: object) -> None:
    """Set a key above the tables. JSON and TOML write lists of plain texts, and booleans, alike."""
    line = f"{key} = {json.dumps(value)}"
    with open_for_edit(folder) as path:
        before = read_edited(path)
        known = parse_toml(before, path)
        if known.get(key) == value:
            return
        setting = re.compile(rf"^[ \t]*{key}[ \t]*={_VALUE}$", re.MULTILINE)
        after, found = setting.subn(lambda _: line, before, count=1)
        hint = f"Add this line above the first [table]: {line}"
        _write_edit(path, before, after if found else f"{line}\n{before}", {**known, key: value}, hint=hint)


def write_model(folder: str, agent: str, model: str) -> None:
    """Set the model that the agent is started with from now on; an empty `model` leaves it to the agent.

    Raise ConfigurationError if the file cannot be parsed or edited safely.
    """
    header = f"[agents.{agent}]"
    with open_for_edit(folder) as path:
        before = read_edited(path)
        wanted = _want(parse_toml(before, path), agent, model)
        if not model and header not in before:
            return
        line = f"model = {json.dumps(model)}" if model else ""
        hint = f"Write this into it: {header} {line}" if line else f"Take it out of {header}"
        _write_edit(path, before, _replace(before, header, line), wanted, hint=hint)


def _write_edit(path: str, before: str, after: str, wanted: dict[str, object], *, hint: str) -> None:
    """Write the text edited by lines if it means what is `wanted`; else raise ConfigurationError.

    No library does this better: tomlkit 0.15 puts a new key below the comment of the next table, and loses
    one where the tables are out of order.
    """
    try:
        is_safe = parse_toml(after, path) == wanted
    except ConfigurationError:
        is_safe = False
    if not is_safe:
        raise ConfigurationError(f"cannot edit {path} safely", hint=hint)
    parse_user_config(wanted, path)
    write_config(path, after, before=before)


def _find_page(table: str) -> str:
    return _PAGES.get(table, "config")


def _want(config: dict[str, object], agent: str, model: str) -> dict[str, object]:
    """Return the tables the file should contain after the edit."""
    agents = config.get("agents")
    known = agents if isinstance(agents, dict) else {}
    wishes = known.get(agent)
    kept = {key: value for key, value in wishes.items() if key != "model"} if isinstance(wishes, dict) else {}
    return {**config, "agents": {**known, agent: {**kept, **({"model": model} if model else {})}}}


def _replace(text: str, header: str, line: str) -> str:
    """Return `text` with `line` as the table's model; an empty line removes it."""
    lines = text.splitlines()
    at = next((number for number, one in enumerate(lines) if one.split("#")[0].strip() == header), None)
    if at is None:
        return "\n".join([*lines, *([""] if lines else []), header, *([line] if line else []), ""])
    end = next((n for n in range(at + 1, len(lines)) if _HEADER.match(lines[n])), len(lines))
    kept = [one for one in lines[at + 1 : end] if not _MODEL.match(one)]
    return "\n".join([*lines[: at + 1], *([line] if line else []), *kept, *lines[end:], ""])


class ReloadingConfig:
    """The user's configuration, read again when the file changes; an invalid file changes nothing."""

    def __init__(self, folder: str) -> None:
        """Read the file. Raise ConfigurationError if it is invalid."""
        self._folder = folder
        self._problem: ConfigurationError | None = None
        # `None` where it is to be read again though it is the same file: it could not be opened.
        self._seen: tuple[int, int, int, int] | None = self._look()
        self._config = read_user_config(folder)

    def get(self) -> UserConfig:
        """Return the user's configuration."""
        seen = self._look()
        if seen != self._seen:
            self._seen = seen
            self._problem = None
            try:
                self._config = read_user_config(self._folder)
            except ConfigurationError as problem:
                _log.warning("config-not-read")
                self._problem = problem
                if find_passing(problem):
                    self._seen = None
        return self._config

    def find_problem(self) -> ConfigurationError | None:
        """Return why the file as it is now is not in effect; `None` if it is."""
        self.get()
        return self._problem

    def _look(self) -> tuple[int, int, int, int]:
        try:
            found = os.stat(os.path.join(self._folder, FILE_NAME))
        except OSError:
            return 0, 0, 0, 0
        # The time of change tells of a file that may be read now and could not before.
        return found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size


_FILE_BYTES = 256 << 10
_MOST_FILES = 20
_MOST_VALUES = 2000
# These are committed and show the names with values nobody uses.
_SHOWN = (".example", ".sample", ".template", ".dist", ".defaults")


def gather_secrets(root: str, environ: Mapping[str, str], *, cwd: str = "") -> frozenset[str]:
    """Return secret values of `environ` and of the `.env` files directly in `root` and `cwd` (empty: none).

    What cannot be read is skipped; at most 20 files of 256 KiB are read in each folder.
    """
    known = set(collect_known(environ.items(), from_file=False))
    for folder in dict.fromkeys(path for path in (root, cwd) if path):
        for path in _find_files(folder):
            try:
                text = read_bounded(path, limit_bytes=_FILE_BYTES).decode("utf-8", "replace")
            except (OSError, RelayError):
                continue
            known |= collect_known(parse_settings(text), from_file=True)
    longest_first = sorted(known, key=lambda value: (-len(value), value))
    return frozenset(longest_first[:_MOST_VALUES])


def _find_files(folder: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return []
    found = [
        os.path.join(folder, name)
        for name in names
        if (name.startswith(".env") or name.endswith(".env")) and not name.endswith(_SHOWN)
    ]
    return [path for path in found if _is_file(path)][:_MOST_FILES]


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except OSError:
        return False
