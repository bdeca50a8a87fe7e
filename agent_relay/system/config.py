"""The configuration files on disk: the user's, and the little a project may say."""

import contextlib
import os
import re
import stat
from collections.abc import Iterator

from agent_relay.domain.config import ProjectConfig, UserConfig
from agent_relay.domain.errors import ConfigurationError
from agent_relay.system.documents import parse_document, parse_toml, read_text, read_toml
from agent_relay.system.files import write_atomic
from agent_relay.system.folders import ensure_private
from agent_relay.system.locks import lock_folder
from agent_relay.system.pattern_cost import refuse_slow

FILE_NAME = "config.toml"
_PAGES = {
    "budgets": "budgets", "context": "context", "export": "exporters", "handoff": "context",
    "redaction": "packet-format",
}  # fmt: skip
"""Which page of the documentation tells of a table; of all others that of the file does."""
_AGENT_NAME = re.compile(r"[a-z][a-z0-9-]*")
_ORDER = re.compile(r"^order[ \t]*=[ \t]*\[[^\]]*\][ \t]*(?:#[^\n]*)?$", re.MULTILINE)


def parse_user_config(tables: dict[str, object], path: str) -> UserConfig:
    """The user's wishes. Raises ConfigurationError naming `path` and key, and a pattern that is slow."""
    config = parse_document(tables, UserConfig, path, _find_page)
    for pattern in config.redaction.allow_patterns:
        refuse_slow(pattern, f"{path}: redaction.allow_patterns", hint="Shorten it, or name texts in: allow")
    return config


def read_user_config(folder: str) -> UserConfig:
    """The user's wishes from `<folder>/config.toml`; the defaults where there is no file.

    Raises ConfigurationError naming file and key.
    """
    path = os.path.join(folder, FILE_NAME)
    try:
        return parse_user_config(read_toml(path), path)
    except FileNotFoundError:
        return UserConfig()


def read_project_config(root: str) -> ProjectConfig:
    """What `<root>/.agent-relay/config.toml` says; nothing where there is no file.

    Raises ConfigurationError naming file and key, also for keys only the user may set.
    """
    path = os.path.join(root, ".agent-relay", FILE_NAME)
    try:
        return parse_document(read_toml(path), ProjectConfig, path, _find_page)
    except FileNotFoundError:
        return ProjectConfig()


@contextlib.contextmanager
def editing(folder: str) -> Iterator[str]:
    """The path of the user's `config.toml`, which no other command of ours changes within.

    Raises RelayError where another one does for too long, ConfigurationError where the folder will not do.
    """
    ensure_private(folder)
    path = os.path.join(folder, FILE_NAME)
    try:
        with lock_folder(folder, f"another command is changing {path}"):
            yield path
    except OSError as error:
        raise ConfigurationError(f"cannot edit {path}: {error.strerror}") from error


def write_config(path: str, text: str, *, before: str) -> None:
    """The user's configuration is `text`: a file at `path`, or the one that a link there leads to.

    Whoever keeps it elsewhere (in a repository of such files, say) goes on having it there; its mode is kept.
    Raises ConfigurationError for a link that leads to no file, and where it does not hold `before` any more,
    which the change was made of; RelayError where it cannot be written.
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
    """The user's configuration before it is changed, empty where there is none. Raises ConfigurationError."""
    if os.path.islink(path) and os.path.exists(path):
        _find_target(path)
    try:
        return read_text(path)
    except FileNotFoundError:
        return ""


def _find_target(path: str) -> tuple[str, int]:
    """The file that the link at `path` leads to, and its mode. Raises ConfigurationError for none."""
    try:
        target = os.path.realpath(path, strict=True)
        found = os.stat(target)
    except OSError as error:
        raise ConfigurationError(
            f"cannot edit {path}: the link leads nowhere ({error.strerror})",
            hint="Make the file it names, or remove the link.",
        ) from error
    if not stat.S_ISREG(found.st_mode):
        raise ConfigurationError(f"cannot edit {path}: it is a link to {target}, which is no file")
    return target, stat.S_IMODE(found.st_mode)


def _tell_changed(path: str) -> ConfigurationError:
    return ConfigurationError(
        f"cannot edit {path}: it was changed just now", hint="Nothing was written. Try again."
    )


def create_config(folder: str, text: str) -> bool:
    """Whether there was no `config.toml`; then it is `text` now. Raises RelayError where it cannot be."""
    with editing(folder) as path:
        is_missing = not os.path.lexists(path)
        if is_missing:
            write_atomic(path, text.encode())
        return is_missing


def write_order(folder: str, order: tuple[str, ...]) -> None:
    """The user's `config.toml` names `order`; every other line of it stays as the user wrote it.

    Raises ConfigurationError where the file cannot be understood or edited safely.
    """
    line = f"order = [{', '.join(_quote(name) for name in order)}]"
    with editing(folder) as path:
        before = read_edited(path)
        wanted = {**parse_toml(before, path), "order": list(order)}
        after, found = _ORDER.subn(lambda _: line, before, count=1)
        if not found:
            after = f"{line}\n{before}"
        if _parse(after) != wanted:
            raise ConfigurationError(f"cannot edit {path} safely", hint=f"Write this line into it: {line}")
        parse_user_config(wanted, path)
        write_config(path, after, before=before)


def _parse(text: str) -> dict[str, object] | None:
    try:
        return parse_toml(text, FILE_NAME)
    except ConfigurationError:
        return None


def _quote(name: str) -> str:
    if not _AGENT_NAME.fullmatch(name):
        raise ConfigurationError(f"{name!r} is no agent's name")
    return f'"{name}"'


def _find_page(table: str) -> str:
    return _PAGES.get(table, "config")
