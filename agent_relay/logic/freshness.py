"""Whether the tree is still the one a packet describes, in sentences for its reader."""

from agent_relay.domain.packet import ResumePacket, TouchedFile
from agent_relay.domain.tree import Tree, TreeFile, render_path

_NAMED = 5
_SHORT = 12


def verify_freshness(packet: ResumePacket, tree: Tree) -> tuple[str, ...]:
    """What is no longer as the packet says; empty where nothing changed or nothing can be compared."""
    then = packet.git
    if then is None or not tree.is_git:
        return ("the tree is no longer a git work tree",) if then is not None and then.head else ()
    found: list[str] = []
    is_seen = bool(then.head or then.fingerprint)  # else a file from elsewhere named a repository, no more
    if is_seen and then.head != tree.head:
        found.append(f"HEAD was {_name(then.head)}, now it is {_name(tree.head)}")
    if (is_seen or then.branch) and then.branch != tree.branch:
        found.append(f"the branch was {then.branch or '(detached)'}, now it is {tree.branch or '(detached)'}")
    if not then.fingerprint or then.fingerprint == tree.fingerprint:
        return tuple(found)
    changed = _changed(packet.touched_files, tree.files)
    if changed:
        names = ", ".join(changed[:_NAMED]) + (", …" if len(changed) > _NAMED else "")
        found.append(f"{len(changed)} {'file' if len(changed) == 1 else 'files'} changed since: {names}")
    elif not found:
        found.append("the contents of changed files are not what they were")
    return tuple(found)


def _name(head: str | None) -> str:
    return head[:_SHORT] if head else "nothing (no commits)"


def _changed(then: tuple[TouchedFile, ...], now: tuple[TreeFile, ...]) -> list[str]:
    """Paths whose entry differs. Files only read are not compared, nor those without anything to compare."""
    before = {file.path: file for file in then if file.status != "read"}
    after = {render_path(file.path): file for file in now}
    gone = [path for path, file in before.items() if path not in after and file.status != "deleted"]
    differ = [
        path
        for path, file in after.items()
        if path not in before or (file.added, file.removed) != (before[path].added, before[path].removed)
    ]
    return sorted({*gone, *differ})
