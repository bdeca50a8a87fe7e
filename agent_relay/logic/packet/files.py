"""Merges what the agent changed with what git sees into one list of files."""

import posixpath
from collections.abc import Iterable
from dataclasses import dataclass

from agent_relay.domain.facts import Facts, FileChange
from agent_relay.domain.packet import Provenance, TouchedFile
from agent_relay.domain.tree import Tree, TreeFile, render_path

_OWN_FOLDER = ".agent-relay"
_READ_FILES = 30
_OTHER_FILES = 200


@dataclass(frozen=True, slots=True)
class Places:
    """The folder paths are relative to: `root`, and `cwd`, which the agent calls its own, below it.

    `prefix` is `cwd` relative to `root`; given where a symlink hides that one lies in the other.
    """

    root: str
    cwd: str
    prefix: str = ""

    def shorten(self, path: str) -> str:
        """`path` relative to the root; absolute where it lies elsewhere."""
        whole = posixpath.normpath(posixpath.join(self.cwd or self.root or "/", path))
        for folder, prefix in ((self.root, ""), (self.cwd, self.prefix)):
            if folder and whole.startswith(folder.rstrip("/") + "/"):
                inner = whole[len(folder.rstrip("/")) + 1 :]
                return render_path(posixpath.normpath(posixpath.join(prefix, inner)))
        return render_path(whole)


def merge_files(
    facts: Facts, tree: Tree | None, before: Iterable[TouchedFile], *, places: Places, agent: str
) -> tuple[TouchedFile, ...]:
    """The files of the work: the predecessors', the agent's, then others git sees; git's state counts.

    Files only read come last, the latest thirty.
    """
    found: dict[str, TouchedFile] = {file.path: file for file in before}
    for change in facts.files:
        _apply(found, change, places, agent)
    seen = {render_path(file.path): file for file in tree.files} if tree else {}
    for path, file in seen.items():
        known = found.get(path)
        if known is not None:
            found[path] = _agree(known, file)
    others = [_adopt(path, file) for path, file in seen.items() if path not in found]
    files = [file for file in found.values() if not _is_own(file.path)]
    changed = [file for file in files if file.status != "read"]
    read = [file for file in files if file.status == "read"]
    others = [file for file in others if not _is_own(file.path)]
    return (*changed, *others[:_OTHER_FILES], *read[-_READ_FILES:])


def _is_own(path: str) -> bool:
    return path == _OWN_FOLDER or path.startswith(f"{_OWN_FOLDER}/")


def _apply(found: dict[str, TouchedFile], change: FileChange, places: Places, agent: str) -> None:
    path = places.shorten(change.path)
    source = Provenance(agent=agent, transcript=change.place, turn=change.turn, at=change.at)
    known = found.pop(path, None)
    if change.action == "read":
        found[path] = known or TouchedFile(path=path, status="read", source=source)
        return
    previous = places.shorten(change.previous_path) if change.previous_path else None
    if previous is not None:
        known = found.pop(previous, None) or known
    if known is not None and known.status == "created" and change.action == "deleted":
        return
    found[path] = TouchedFile(
        path=path,
        status="created" if known is not None and known.status == "created" else change.action,
        added=_add(known.added if known else None, change.added),
        removed=_add(known.removed if known else None, change.removed),
        previous_path=previous or (known.previous_path if known else None),
        source=source,
    )


def _add(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return one if other is None else other
    return one + other


def _agree(known: TouchedFile, file: TreeFile) -> TouchedFile:
    """The agent's file in the state git sees it in; an untracked file the agent made stays created."""
    status = "created" if file.status == "untracked" and known.status == "created" else file.status
    counted = file.added is not None
    return known.model_copy(
        update={
            "status": status,
            "added": file.added if counted else known.added,
            "removed": file.removed if counted else known.removed,
            "previous_path": render_path(file.previous_path) if file.previous_path else known.previous_path,
        }
    )


def _adopt(path: str, file: TreeFile) -> TouchedFile:
    return TouchedFile(
        path=path,
        status=file.status,
        added=file.added,
        removed=file.removed,
        previous_path=render_path(file.previous_path) if file.previous_path else None,
    )
