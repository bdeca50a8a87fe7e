"""Find which version of an agent's program is installed without running it; remember what it answered."""

import contextlib
import json
import os
import re
from collections.abc import Callable, Mapping

from agent_relay.domain.errors import RelayError
from agent_relay.domain.names import find_number
from agent_relay.system.disk.files import read_bounded, write_atomic
from agent_relay.system.disk.folders import ensure_private
from agent_relay.system.disk.locks import lock_beside

_PACKAGE_BYTES = 1 << 20
_FILE_BYTES = 1 << 20
_LOCK_LIMIT_S = 2.0
_FOLDERS_ABOVE = 4
"""Most folders between a program and its package's own file above it."""
_MOST_ANSWERS = 200
_VERSION = re.compile(r"v?\d{1,9}(?:\.\d{1,9}){2,4}(?:[-+.][0-9A-Za-z.+-]{1,40})?")


def find_installed_version(program: str, package: str, known: str) -> str:
    """Return the version of the program at this path, empty if it cannot be found without running it.

    It is looked for in the file of the npm `package` that the program belongs to, in the program's own path
    as version managers lay it out, and among the answers in the file `known`. Takes well under a millisecond.
    """
    try:
        real = os.path.realpath(program)
        return _read_package(real, package) or _read_path(real) or _read_answer(real, known)
    except OSError:
        return ""


def note_answer(program: str, answer: str, known: str) -> None:
    """Remember what the program at this path said of its version, for as long as its file is the same.

    Nothing is written if the folder of `known` does not exist: a mere check creates no folder.
    """
    version = find_number(answer)
    if not version or not os.path.isdir(os.path.dirname(known)):
        return
    try:
        real = os.path.realpath(program)
        mark = _identify(real)
    except OSError:
        return
    entry = [*mark, version]

    def change(document: dict[str, dict[str, object]]) -> bool:
        answers = document["answers"]
        if answers.get(real) == entry:
            return False
        answers.pop(real, None)
        answers[real] = entry
        while len(answers) > _MOST_ANSWERS:
            answers.pop(next(iter(answers)))
        return True

    _update(known, change)


def claim_first_notice(agent: str, version: str, known: str) -> bool:
    """Return whether the user is to be notified of this version of `agent`: true only the first time.

    False if that cannot be remembered: the notice would appear at every start.
    """
    if _read(known)["told"].get(agent) == version:
        return False

    def change(document: dict[str, dict[str, object]]) -> bool:
        is_new = document["told"].get(agent) != version
        document["told"][agent] = version
        return is_new

    return _update(known, change)


def _read_package(program: str, package: str) -> str:
    if not package:
        return ""
    folder = os.path.dirname(program)
    for _ in range(_FOLDERS_ABOVE):
        with contextlib.suppress(RelayError, OSError, ValueError, RecursionError):
            found = json.loads(read_bounded(f"{folder}/package.json", limit_bytes=_PACKAGE_BYTES))
            if isinstance(found, dict) and found.get("name") == package:
                return find_number(str(found.get("version", "")))
        folder = os.path.dirname(folder)
    return ""


def _read_path(program: str) -> str:
    """Return the version in `…/versions/2.1.330` or `…/codex/0.169.0/bin/codex`."""
    *_, third, second, first, name = ("", "", "", *program.split("/"))
    if first == "versions" and _VERSION.fullmatch(name):
        return find_number(name)
    is_kept = first == "bin" and third == name and _VERSION.fullmatch(second)
    return find_number(second) if is_kept else ""


def _read_answer(program: str, known: str) -> str:
    entry = _read(known)["answers"].get(program)
    is_same = isinstance(entry, list) and len(entry) == 3 and entry[:2] == _identify(program)  # noqa: PLR2004
    return str(entry[2]) if is_same and isinstance(entry, list) else ""


def _identify(program: str) -> list[int]:
    found = os.stat(program)
    return [found.st_size, found.st_mtime_ns]


def _read(path: str) -> dict[str, dict[str, object]]:
    document: object = None
    with contextlib.suppress(RelayError, OSError, ValueError, RecursionError):
        document = json.loads(read_bounded(path, limit_bytes=_FILE_BYTES))
    tables = document if isinstance(document, Mapping) else {}
    return {
        name: dict(table) if isinstance(table := tables.get(name), Mapping) else {}
        for name in ("answers", "told")
    }


def _update(path: str, change: Callable[[dict[str, dict[str, object]]], bool]) -> bool:
    """Return whether `change` changed what is remembered; false if that could not be written."""
    try:
        ensure_private(os.path.dirname(path))
        with lock_beside(path, limit_s=_LOCK_LIMIT_S):
            document = _read(path)
            if not change(document):
                return False
            write_atomic(path, json.dumps(document, indent=1).encode() + b"\n", durable=False)
            return True
    except (OSError, RelayError):
        return False
