"""`agent-relay packet diff` and `edit`: what the user changed before the successor reads it."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Annotated

import typer

from agent_relay.domain.documents.packet import parse_document, parse_packet, render_json
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.text.names import agent_command
from agent_relay.faces.cli.packet.lookup import (
    AsJson,
    FoundPacket,
    Number,
    SessionWord,
    find_packet,
    is_picked_up,
)
from agent_relay.faces.render.output import print_contents, print_json, print_lines
from agent_relay.packet.edits import diff_texts
from agent_relay.store.edit_buffer import EditBuffer, open_edit_buffer, sweep_edit_buffers
from agent_relay.store.packets import (
    LIMIT_BYTES,
    PUBLISHED,
    find_edited,
    read_body,
    read_document,
    read_original,
    read_packet,
    replace_file,
)
from agent_relay.system.disk.files import read_bounded


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
    if as_json:
        edited = find_edited(found.folder, found.sequence, found.target)
        print_json({"path": done.path, "changed": done.is_changed, "edited": edited})
    else:
        print_lines(*render_edit(found, done))


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
    lines = ["Nothing was changed."]
    if done.is_changed:
        lines = [f"{found.target} will read packet {found.sequence} as you left it: {done.path}"]
    if done.left:
        lines.append(f"An earlier edit that reached no packet is kept in {done.left[-1]}")
    return lines


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
