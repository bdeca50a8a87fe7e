"""`agent-relay packet`: find, compare and edit a session's packets; the table of all its sub-commands.

The others take long to load and are loaded by name when they are called.
"""

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Annotated

import typer

from agent_relay.domain.documents.packet import Redaction, ResumePacket
from agent_relay.domain.documents.packet_json import parse_document, parse_packet, render_json
from agent_relay.domain.errors import RelayError, UntrustedDataError, WrongUseError
from agent_relay.domain.names import JOURNAL
from agent_relay.domain.text.names import agent_command
from agent_relay.faces.cli.session.lookup import find_session
from agent_relay.faces.cli.typer_runner import AsJson, Functions
from agent_relay.faces.render.output import print_contents, print_either, print_json
from agent_relay.packet.edits import diff_texts
from agent_relay.store.edit_buffer import EditBuffer, open_edit_buffer, sweep_edit_buffers
from agent_relay.store.packets import (
    LIMIT_BYTES,
    PUBLISHED,
    find_edited,
    list_packets,
    read_body,
    read_document,
    read_original,
    read_packet,
    replace_file,
)
from agent_relay.store.session_index import find_near_root, read_sessions_at
from agent_relay.system.disk.files import read_bounded
from agent_relay.system.disk.folders import get_cwd, get_folders

SessionWord = Annotated[
    str, typer.Argument(help="A session's id, or its beginning or end; by default the newest here.")
]
Number = Annotated[int, typer.Option("--number", "-n", min=0, help="Which packet; by default the newest.")]


def path(session: SessionWord = "", *, number: Number = 0, as_json: AsJson = False) -> None:
    """Print the path of the packet's text; its successor reads your edits until it is picked up."""
    found = find_packet(session, number)
    print_either({"text": found.text, "document": found.document}, found.text, as_json=as_json)


def schema(*, as_json: AsJson = False) -> None:  # noqa: ARG001 - the schema is JSON in any case
    """Print the JSON Schema of resume packets."""
    print_json(ResumePacket.model_json_schema(by_alias=True))


def count_kinds(entries: tuple[Redaction, ...]) -> str:
    """Return the kinds with their counts, for people."""
    return ", ".join(f"{entry.count} {entry.kind}" for entry in entries)


@dataclass(frozen=True, slots=True)
class FoundPacket:
    """A packet's number, target and files; `folder` is its session's, `root` holds the `.agent-relay`."""

    root: str
    cwd: str
    folder: str
    sequence: int
    target: str
    document: str

    @property
    def text(self) -> str:
        """The path of the text that the target reads."""
        return f"{self.document.removesuffix('.json')}.md"


def find_packet(session: str, number: int) -> FoundPacket:
    """Return the packet meant; raise WrongUseError if there is none.

    Without `session`, the newest session here that has such a packet is meant; with `number` 0, its newest.
    """
    if session:
        views = [find_session(get_folders(), session)]
    else:
        views = read_sessions_at(find_near_root(get_cwd()), get_folders().sessions)
    for view in views:
        folder = str(view["folder"])
        packets = [row for row in list_packets(folder) if number in {0, row[0]}]
        if packets:
            sequence, target, document = packets[-1]
            root = str(view["root"])
            return FoundPacket(root, str(view["cwd"]) or root, folder, sequence, target, document)
    what = f"packet {number}" if number else "packet"
    raise WrongUseError(f"there is no {what} here yet", hint="A handoff makes one; see: agent-relay status")


def get_renderer(found: FoundPacket) -> Callable[[ResumePacket], str]:
    """Return the function that renders a packet for the found packet's target.

    Raises UntrustedDataError if no agent here has the target's name, ConfigurationError if its adapter
    cannot be used.
    """
    from agent_relay.agents.adapters import build_renderer
    from agent_relay.agents.catalog import read_catalog

    catalog = read_catalog(get_folders(), root=found.root)
    if found.target not in catalog:
        raise UntrustedDataError(
            f"packet {found.sequence} is for {found.target}, and there is no such agent here",
            hint="See: agent-relay agents --all",
        )
    return build_renderer(catalog.get(found.target), found.folder)


def is_picked_up(found: FoundPacket, packet_id: str) -> bool:
    """Check whether a leg was started on the packet; raise UntrustedDataError for a damaged journal."""
    from agent_relay.store.journal import read_session

    session = read_session(f"{found.folder}/{JOURNAL}")
    return session is not None and any(leg.packet == packet_id for leg in session.legs)


def find_changes(found: FoundPacket, packet: ResumePacket) -> tuple[str, ...]:
    """Return what changed in the tree since the packet was written, a sentence each."""
    from agent_relay.packet.freshness import list_touched, verify_freshness
    from agent_relay.system.git.file_look_up import look_up_files
    from agent_relay.system.git.tree_state import read_tree

    tree = read_tree(found.cwd)
    return verify_freshness(packet, look_up_files(tree, list_touched(tree.root, packet)))


def find_fingerprint(found: FoundPacket, packet_id: str) -> str:
    """Return the packet's fingerprint in the session's journal; empty if the journal does not name it."""
    from agent_relay.domain.events.work import PacketPublished, PacketSaved
    from agent_relay.store.journal import read_events

    events = read_events(f"{found.folder}/{JOURNAL}")
    for event in reversed(events):
        body = event.body
        if isinstance(body, PacketPublished | PacketSaved) and body.packet == packet_id:
            return body.fingerprint
    return ""


def diff(session: SessionWord = "", *, number: Number = 0, as_json: AsJson = False) -> None:
    """Show what was edited in the packet's text and document since it was published."""
    found = find_packet(session, number)
    original = read_original(found.folder, found.sequence, found.target)
    edited = find_edited(found.folder, found.sequence, found.target)
    if original is None:
        raise RelayError(
            f"the published text of packet {found.sequence} was not kept, so there is nothing to compare",
            hint="Whether it was edited is known: agent-relay packet verify",
        )
    body = read_body(found.folder, found.sequence, found.target)
    document = {key: value for key, value in read_document(found.document).items() if key != PUBLISHED}
    changed = {
        "text": _compare(original.text, body, found.text),
        "document": _compare(render_json(original.document), render_json(document), found.document),
    }
    if edited in {"nothing", "text"}:
        changed["document"] = ()
    if as_json:
        print_json({"edited": edited, **{key: list(lines) for key, lines in changed.items()}})
    else:
        lines = [line for part in changed.values() for line in part]
        print_contents(*(lines or ["The packet is as it was published."]))


def edit(
    session: SessionWord = "",
    *,
    number: Number = 0,
    document: Annotated[bool, typer.Option("--document", help="The JSON document, not the text.")] = False,
    as_json: AsJson = False,
) -> None:
    """Open the packet in your editor ($VISUAL, $EDITOR); its successor reads what you leave.

    Refused once a successor was started on it. An edit that cannot be used is kept in a file.
    """
    found = find_packet(session, number)
    done = edit_found(found, document=document, lent=nullcontext())
    edited = find_edited(found.folder, found.sequence, found.target)
    view = {"path": done.path, "changed": done.is_changed, "edited": edited}
    print_either(view, *render_edit(found, done), as_json=as_json)


@dataclass(frozen=True, slots=True)
class Edit:
    """The outcome of an edit of the file at `path`; `left` are edits that reached no packet, oldest first."""

    path: str
    is_changed: bool
    left: Sequence[str]


def edit_found(found: FoundPacket, *, document: bool, lent: AbstractContextManager[None]) -> Edit:
    """Run the user's editor on the packet, within `lent`; return the outcome.

    Raises WrongUseError if no editor is known or a successor was started on the packet, RelayError if what
    was saved cannot be used: the edit is then kept in a file that the hint names.
    """
    editor = find_editor()
    packet_id = read_packet(found.document).packet_id
    if is_picked_up(found, packet_id):
        raise WrongUseError(
            f"packet {found.sequence} was given to its agent already, so an edit would change nothing",
            hint=f"Make another one: {agent_command(found.target, '--no-launch')}",
        )
    path = found.document if document else found.text
    before = _read(path)
    left = sweep_edit_buffers(found.folder, limit_bytes=LIMIT_BYTES)
    with open_edit_buffer(found.folder, os.path.basename(path), before) as buffer:
        try:
            with lent:
                _run_editor(editor, buffer)
            after = _read(buffer.path)
            if after != before:
                _check(after, path, document=document)
                replace_file(path, after, before=before, is_picked_up=lambda: is_picked_up(found, packet_id))
        except RelayError as error:
            if _is_unchanged(buffer.path, before):
                buffer.remove()
                raise
            raise type(error)(
                error.sentence, hint=f"{error.hint} Your edit is kept in {buffer.path}".strip()
            ) from error
        buffer.remove()
    return Edit(path, after != before, left)


def render_edit(found: FoundPacket, done: Edit) -> list[str]:
    """Return the lines that tell the user the outcome of the edit."""
    changed = f"{found.target} will read packet {found.sequence} as you left it: {done.path}"
    left = [f"An earlier edit that reached no packet is kept in {path}" for path in done.left[-1:]]
    return [changed if done.is_changed else "Nothing was changed.", *left]


def find_editor() -> list[str]:
    """Return the words that start the user's editor; raise WrongUseError if none is known."""
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(chosen)
    except ValueError:
        raise WrongUseError(
            f"$EDITOR cannot be read as a command: {chosen}", hint="Set it: export EDITOR=nano"
        ) from None
    if not words:
        fallback = shutil.which("editor") or shutil.which("vi")
        if fallback is None:
            raise WrongUseError("no editor is set", hint="Set one: export EDITOR=nano")
        words = [fallback]
    return words


def _run_editor(words: list[str], buffer: EditBuffer) -> None:
    try:
        # The editor has the lock too: it may outlive us, and its file is not to go away under it.
        status = subprocess.run([*words, buffer.path], check=False, pass_fds=(buffer.lock,)).returncode
    except OSError as problem:
        raise WrongUseError(f"cannot start {words[0]}: {problem.strerror}", hint="Set $EDITOR.") from None
    if status:
        raise RelayError(f"{words[0]} ended with {status}, so nothing was changed")


def _check(data: bytes, path: str, *, document: bool) -> None:
    """Raise RelayError if the edit is no packet document, or no text: empty, or with a NUL byte."""
    if document:
        parse_packet(parse_document(data, name="the edited document"), name="the edited document")
    elif not data.strip():
        raise RelayError(
            "the text is empty, so nothing was changed", hint="To start an agent without a packet: --new"
        )
    elif b"\0" in data:
        name = os.path.basename(path)
        raise RelayError(f"the saved file contains a NUL byte; {name} was left unchanged")


def _compare(before: str, after: str, path: str) -> tuple[str, ...]:
    name = os.path.basename(path)
    return diff_texts(before, after, names=(f"{name} (published)", f"{name} (now)"))


def _read(path: str) -> bytes:
    try:
        return read_bounded(path, limit_bytes=LIMIT_BYTES)
    except FileNotFoundError:
        raise RelayError(f"{path} is gone", hint="Its document is still there: use --document.") from None


def _is_unchanged(path: str, before: bytes) -> bool:
    try:
        return _read(path).strip() in {before.strip(), b""}
    except RelayError:
        return True


_HERE = "agent_relay.faces.cli.session"
PACKET: Functions = {
    "show": f"{_HERE}.packet_reading:show",
    "path": path,
    "diff": diff,
    "edit": edit,
    "verify": f"{_HERE}.packet_reading:verify",
    "export": f"{_HERE}.packet_transfer:export",
    "import": f"{_HERE}.packet_transfer:import_file",
    "schema": schema,
    "build": f"{_HERE}.packet_transfer:build",
}
"""The functions by sub-command."""
