"""List what changed since a packet was written, in the tree and in the conversation, in sentences."""

from datetime import datetime

from agent_relay.domain.documents.packet import ResumePacket, TouchedFile
from agent_relay.domain.facts import Facts
from agent_relay.domain.values.ids import Tree, TreeFile, render_path

_NAMED = 5
_SHORT = 12


def verify_freshness(packet: ResumePacket, tree: Tree) -> tuple[str, ...]:
    """List what differs from the packet by now; empty if nothing changed or nothing can be compared."""
    then = packet.git
    is_seen = then is not None and bool(then.head or then.fingerprint)
    if not tree.is_whole:
        return (f"cannot tell whether the tree changed: {tree.note}",) if is_seen else ()
    if then is None or not tree.is_git:
        return ("the tree is no longer a git work tree",) if then is not None and then.head else ()
    found: list[str] = []  # where nothing was seen, a file from elsewhere named a repository, no more
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
        found.append("files that were already modified have been modified again")
    return tuple(found)


def list_later(facts: Facts, agent: str, since: datetime) -> tuple[str, ...]:
    """List what `agent` was asked after the moment `since` (aware), when the packet was written.

    The unanswered prompt is quoted in full, and may be several prompts in one text.
    """
    prompts = [
        said for said in facts.conversation if said.role == "user" and said.at is not None and said.at > since
    ]
    notes: list[str] = []
    if prompts:
        which = "prompt was" if len(prompts) == 1 else "prompts were"
        notes.append(f"{len(prompts)} more {which} given to {agent}, whose work on it is not included")
    waiting = facts.unprocessed_prompt
    if waiting is not None and waiting.at is not None and waiting.at > since:
        notes.append(f"the user sent this last and got no answer: {waiting.text}")
    return tuple(notes)


def _name(head: str | None) -> str:
    return head[:_SHORT] if head else "nothing (no commits)"


def _changed(then: tuple[TouchedFile, ...], now: tuple[TreeFile, ...]) -> list[str]:
    """List the paths whose entry differs.

    Files only read are not compared, nor those without anything to compare.
    """
    before = {file.path: file for file in then if file.status != "read"}
    after = {render_path(file.path): file for file in now}
    gone = [path for path, file in before.items() if path not in after and file.status != "deleted"]
    differ = [
        path
        for path, file in after.items()
        if path not in before or (file.added, file.removed) != (before[path].added, before[path].removed)
    ]
    return sorted({*gone, *differ})
