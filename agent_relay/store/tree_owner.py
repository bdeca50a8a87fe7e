"""Claim a working tree for one owner, across the runtime folders, containers and hosts that share it.

In `.agent-relay/owner/` of the tree are `owner.json` (who it is), `daemon.lock` (flocked by the daemon that
has a session there) and `agents.lock` (flocked, shared, by every holder). On one kernel the locks show who
lives, in whatever namespaces; between machines nothing does, and only the file counts.
"""

import contextlib
import hashlib
import json
import logging
import os

from msgspec.structs import asdict

from agent_relay.domain.errors import RelayError
from agent_relay.domain.names import get_project_folder
from agent_relay.domain.values import UNKNOWN_OWNER, Owner
from agent_relay.session.ownership import (
    OwnerRelation,
    find_owner_relation,
    is_plausible,
    render_owner,
    render_way_there,
)
from agent_relay.store.project import find_part, open_part
from agent_relay.system.disk.files import cannot_write, read_object, write_atomic
from agent_relay.system.disk.locks import lock_folder, take_lock
from agent_relay.system.disk.removal import sweep_unfinished

_log = logging.getLogger(__name__)
_LIMIT_BYTES = 1 << 16
_FOLDER = "owner"
_RECORD, _DAEMON, _AGENTS = "owner.json", "daemon.lock", "agents.lock"


class TreeOwnedError(RelayError):
    """Another owner, `owner`, works in the tree `root`, or may."""

    def __init__(self, sentence: str, root: str, owner: Owner, *, hint: str) -> None:
        super().__init__(sentence, hint=hint)
        self.root = root
        self.owner = owner


def claim_tree(root: str, us: Owner, *, by_hand: bool = False) -> int:
    """Return the claim's descriptor: open, it holds the claim; -1 without locks and without a known owner.

    With `by_hand` a person says that an owner that cannot be seen from here is gone. Raise TreeOwnedError if
    another owner, or another daemon of ours, lives there or may; RelayError if the folder is not ours.
    """
    folder = _make_folder(root)
    if not folder:
        return -1
    try:
        with lock_folder(folder, f"another process is claiming {root}"):
            return _claim(root, folder, us, by_hand=by_hand)
    except OSError as error:
        raise cannot_write(folder, error) from error


def _claim(root: str, folder: str, us: Owner, *, by_hand: bool) -> int:
    """Do what `claim_tree` does, alone in the folder."""
    known = read_tree_owner(root)
    handle = _lock(f"{folder}/{_DAEMON}")
    if handle is None:
        raise _build_error(root, known or us, us, lives=True)
    is_claimed = False
    try:
        _check(root, folder, known, us, by_hand=by_hand)
        sweep_unfinished(folder)
        if known != us:
            _write_record(folder, us)
        is_claimed = True
    finally:
        if not is_claimed:
            _close(handle)
    return handle


def find_stranger(root: str, us: Owner) -> TreeOwnedError | None:
    """Return the error that keeps us from a tree that another owner has or may have; `None` for none.

    Raise RelayError if that cannot be seen.
    """
    folder, known = find_part(root, _FOLDER), read_tree_owner(root)
    if not folder or known is None or find_owner_relation(known, us) is OwnerRelation.SELF:
        return None
    try:
        with lock_folder(folder, f"another process is claiming {root}"):
            probe = _lock(f"{folder}/{_DAEMON}")
            _close(probe)
            if probe is None:
                return _build_error(root, known, us, lives=True)
            _check(root, folder, known, us, by_hand=False)
    except TreeOwnedError as error:
        return error
    except OSError as error:
        raise RelayError(f"cannot look into {folder}: {error.strerror}") from error
    return None


def close_claim(claim: int) -> None:
    """Close the claim; the tree stays recorded as its owner's, whose agents may live on in it."""
    _close(claim)


def release_tree(root: str, claim: int) -> None:
    """Remove the record that the tree has an owner: any owner may be the next."""
    if claim < 0:
        return
    folder = _name_folder(root)
    with contextlib.suppress(OSError, RelayError), lock_folder(folder, f"another process is claiming {root}"):
        os.unlink(f"{folder}/{_RECORD}")
    os.close(claim)


def hold_tree(root: str) -> int:
    """Return a descriptor for a holder: while it is open, no other owner on this kernel gets the tree.

    It is -1 if the disk takes no lock.
    """
    handle = _lock(f"{_name_folder(root)}/{_AGENTS}", is_shared=True)
    return -1 if handle is None else handle


def is_claim_gone(claim: int) -> bool:
    """Tell whether the claim's file was deleted, so that others would not see the claim."""
    return claim >= 0 and os.fstat(claim).st_nlink == 0


def is_claim_of(claim: int, root: str) -> bool:
    """Tell whether the claim is for the tree that is at `root` now."""
    try:
        return claim >= 0 and os.path.samestat(os.fstat(claim), os.stat(f"{_name_folder(root)}/{_DAEMON}"))
    except OSError:
        return False


def read_tree_owner(root: str) -> Owner | None:
    """Return the owner in the tree's record; `None` if there is none that can be read."""
    found = read_object(f"{_name_folder(root)}/{_RECORD}", limit_bytes=_LIMIT_BYTES)
    texts = {name: found.get(name) for name in Owner.__struct_fields__}
    owner = Owner(**{name: text for name, text in texts.items() if isinstance(text, str)})
    return owner if owner.is_known and is_plausible(owner) else None


def _check(root: str, folder: str, known: Owner | None, us: Owner, *, by_hand: bool) -> None:
    """Raise TreeOwnedError if an agent of the `known` owner lives in the tree, or may."""
    if known is None and not os.path.lexists(f"{folder}/{_RECORD}"):
        return
    # If the record cannot be read, only the locks show who lives.
    relation = OwnerRelation.SAME_KERNEL if known is None else find_owner_relation(known, us)
    if relation in (OwnerRelation.SELF, OwnerRelation.BEFORE_REBOOT):
        return
    probe = _lock(f"{folder}/{_AGENTS}")
    _close(probe)
    is_free = probe is not None and probe >= 0
    if relation is OwnerRelation.SAME_KERNEL and is_free:
        return
    if by_hand and probe is not None:
        return
    raise _build_error(root, known or UNKNOWN_OWNER, us, lives=probe is None)


def _build_error(root: str, other: Owner, us: Owner, *, lives: bool) -> TreeOwnedError:
    if find_owner_relation(other, us) is OwnerRelation.SELF and other.is_known:
        return TreeOwnedError(
            f"another daemon of yours still has the sessions in {root}",
            root,
            other,
            hint="Try again in a moment.",
        )
    who = render_owner(other, us)
    if lives:
        there = render_way_there(other, "attach")
        is_near = other.pid_namespace == us.pid_namespace
        hint = f"Go there: {there}; or end it: {render_way_there(other, 'stop')}"
        return TreeOwnedError(
            f"{who} is at work in {root}",
            root,
            other,
            hint=hint if is_near else "Go on in that container, or stop it.",
        )
    return TreeOwnedError(
        f"{who} may be at work in {root}, which cannot be seen from here",
        root,
        other,
        hint="Stop its sessions there. Where it is gone for good: agent-relay take-over",
    )


def _make_folder(root: str) -> str:
    """Return the folder of the tree's owner, ignored by git whatever rules are above; make it if missing.

    Empty if the disk refuses it. Raises RelayError if what is there is not ours.
    """
    try:
        return open_part(root, _FOLDER)
    except RelayError as error:
        if not isinstance(error.__cause__, OSError):
            raise
        _log.warning("tree-unclaimed why=%s", type(error).__name__)
        return ""


def _name_folder(root: str) -> str:
    return f"{get_project_folder(root)}/{_FOLDER}"


def _write_record(folder: str, us: Owner) -> None:
    try:
        write_atomic(f"{folder}/{_RECORD}", json.dumps(asdict(us)).encode() + b"\n", durable=False)
    except RelayError:
        # A full disk must not keep a daemon from its living agents; on this machine the locks show as much.
        _log.warning("owner-unwritten")


def _lock(path: str, *, is_shared: bool = False) -> int | None:
    """Return the descriptor that holds the lock; `None` if another process does, -1 if locking fails."""
    try:
        return take_lock(path, is_shared=is_shared)
    except RelayError:
        return -1


def _close(handle: int | None) -> None:
    if handle is not None and handle >= 0:
        os.close(handle)


_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_MACHINE_IDS = ("/etc/machine-id", "/var/lib/dbus/machine-id")
_PURPOSE = b"agent-relay owner of a working tree\n"
"""machine-id(5) asks not to expose the id itself: a digest for this purpose is used instead."""


def read_owner(runtime: str) -> Owner:
    """Return the owner that works with the runtime folder `runtime`, in this process's namespaces."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")
    except OSError:
        namespace = ""
    return Owner(
        host=os.uname().nodename,
        machine=_digest_machine(),
        boot=_read(_BOOT_ID),
        pid_namespace=namespace,
        runtime=os.path.realpath(runtime),
    )


def _digest_machine() -> str:
    for path in _MACHINE_IDS:
        if found := _read(path):
            return hashlib.sha256(_PURPOSE + found.encode()).hexdigest()[:16]
    return ""


def _read(path: str) -> str:
    """Return the one line of a system file; empty if there is none."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read(256).strip()
    except OSError:
        return ""
