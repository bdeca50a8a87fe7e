"""`agent-relay packet export`, `import` and `build`: carry packets out and in, or make one."""

import hashlib
import os
import re
import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

import typer

from agent_relay.agents.adapters import LoadedAdapter, build_renderer, list_default_roster
from agent_relay.agents.catalog import read_catalog
from agent_relay.domain.documents.config import build_roster
from agent_relay.domain.documents.packet import Reason, ResumePacket
from agent_relay.domain.documents.packet_json import (
    parse_document,
    parse_packet,
    render_document,
    render_json,
)
from agent_relay.domain.errors import ConfigurationError, RelayError, UntrustedDataError, WrongUseError
from agent_relay.domain.facts import Facts
from agent_relay.domain.names import build_ulid
from agent_relay.domain.text.names import continue_command
from agent_relay.faces.cli.session.packet import Number, SessionWord, find_packet
from agent_relay.faces.cli.typer_runner import AsJson
from agent_relay.faces.render.output import print_either, print_json
from agent_relay.packet.airc import is_airc, parse_airc, render_airc
from agent_relay.packet.budget import fit_packet
from agent_relay.packet.build import PacketContext, build_packet
from agent_relay.packet.freshness import list_touched
from agent_relay.redact.known_values import build_allow
from agent_relay.redact.packet import redact_facts, redact_packet
from agent_relay.sources.transcript_reader import read_facts
from agent_relay.store.packet_publication import ImportPlace, import_packet
from agent_relay.store.packets import LIMIT_BYTES, PUBLISHED, read_as_left
from agent_relay.system.clock import SystemClock, create_ulid
from agent_relay.system.config_file import gather_secrets, read_project_config, read_user_config
from agent_relay.system.disk.files import read_bounded, write_output
from agent_relay.system.disk.folders import Folders, get_cwd, get_folders
from agent_relay.system.git.file_look_up import look_up_files
from agent_relay.system.git.tree_state import find_root, read_tree

_AGENT = re.compile(r"[a-z][a-z0-9-]{0,31}")


class Format(StrEnum):
    """The formats a packet is exported in: relay's own document, or an AIRC handoff."""

    RELAY = "relay"
    AIRC = "airc"


As = Annotated[Format, typer.Option("--format", help="relay's own document, or an AIRC handoff v1.")]


def export(
    session: SessionWord = "",
    *,
    number: Number = 0,
    output: Annotated[str, typer.Option("--output", "-o", help="The file; by default standard output.")] = "",
    form: As = Format.RELAY,
    as_json: AsJson = False,
) -> None:
    """Write the packet, as you left it, as one JSON file that `packet import` reads elsewhere.

    Secrets are looked for once more. With --output an existing file is replaced; --json then says what
    was written.
    """
    found = find_packet(session, number)
    packet = _redact(read_as_left(found.folder, found.sequence, found.target), found.cwd)
    document = render_airc(packet) if form is Format.AIRC else render_document(packet)
    document.pop(PUBLISHED, None)
    text = render_json(document)
    if not output:
        sys.stdout.write(text)
        return
    write_output(output, text.encode("utf-8", "backslashreplace"))
    view = {"path": os.path.abspath(output), "format": form.value, "packet_id": packet.packet_id}
    print_either(view, f"Packet {found.sequence} is in {output}", as_json=as_json)


def import_file(
    path: Annotated[str, typer.Argument(metavar="FILE", help="What `packet export` wrote; - reads it.")],
    *,
    target: Annotated[
        str, typer.Option("--to", help="The agent that will read it; by default the one the file names.")
    ] = "",
    form: Annotated[
        Format | None, typer.Option("--format", help="relay or airc; by default what the file is.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a session here of a packet from elsewhere; the agent it is for then goes on with it.

    Secrets are looked for once more, and paths, ids and commands in the file are not trusted.
    """
    clock, at = SystemClock(), datetime.now(UTC)
    name = "what was read" if path == "-" else path
    packet_id, session_id = create_ulid(clock), create_ulid(clock)
    packet = _parse(_read(path), name, form, packet_id=packet_id, session_id=session_id, at=at)
    folders, cwd = get_folders(), get_cwd()
    root = find_root(cwd) or os.path.realpath(cwd)
    loaded, tokens, roster = _find_target(folders, root, target or packet.target_agent)
    _check_names(packet, name)
    origin = {"packet_id": packet.packet_id, "session_id": packet.session_id}
    agent = str(loaded.adapter.name)
    own = {"packet_id": packet_id, "session_id": session_id, "sequence": 1, "target_agent": agent}
    whole = {**packet.model_dump(by_alias=True), **own, "imported_from": origin}
    packet = _redact(ResumePacket.model_validate(whole), cwd)
    render = build_renderer(loaded, "")
    packet = fit_packet(packet, tokens=tokens, render=render)
    place = ImportPlace(root, os.path.realpath(cwd), roster)
    folder, done = import_packet(folders, place, packet, render(packet), leg=create_ulid(clock), at=at)
    start = continue_command(agent, packet.session_id)
    text = os.path.join(folder, done.text_path)
    view = {"session": packet.session_id, "agent": agent, "text": text, "start": start}
    told = f"Imported from {packet.previous_agent} for {agent}. Start it: {start}"
    print_either(view, told, as_json=as_json)


def _parse(
    data: bytes, name: str, form: Format | None, *, packet_id: str, session_id: str, at: datetime
) -> ResumePacket:
    """Return the packet in `data`, in `form` or else the form it has; raise UntrustedDataError for none."""
    try:
        document = parse_document(data, name=name)
        document.pop(PUBLISHED, None)
        if is_airc(document) if form is None else form is Format.AIRC:
            return parse_airc(document, packet_id=packet_id, session_id=session_id, at=at, name=name)
        return parse_packet(document, name=name)
    except UntrustedDataError as error:
        hint = error.hint if error.hint.startswith("Upgrade") else "Name a file `packet export` wrote"
        raise UntrustedDataError(error.sentence, hint=hint) from error


def _redact(packet: ResumePacket, cwd: str) -> ResumePacket:
    wishes = read_user_config(get_folders().config).redaction
    known = gather_secrets(find_root(cwd) or cwd, os.environ, cwd=cwd)
    return redact_packet(packet, known=known, allow=build_allow(wishes.allow, wishes.allow_patterns))


def _find_target(folders: Folders, root: str, name: str) -> tuple[LoadedAdapter, int, tuple[str, ...]]:
    """Return the agent of that name, the size limit of its packets, and the session's roster."""
    catalog = read_catalog(folders, root=root)
    known = list_default_roster(catalog.adapters)
    if name not in catalog:
        raise WrongUseError(
            f"there is no agent {name[:40]!r} here", hint=f"Choose one with --to: {', '.join(known)}"
        )
    loaded = catalog.get(name)
    config = read_user_config(folders.config)
    roster = build_roster(known, config, read_project_config(root))
    tokens = config.get_agent(name).budget_tokens or loaded.adapter.budget_tokens
    return loaded, tokens, roster if name in roster else (name, *roster)


def _check_names(packet: ResumePacket, name: str) -> None:
    """Raise UntrustedDataError if an agent's name is not valid: it would be printed as a word of ours."""
    names = [packet.previous_agent, *(leg.agent for leg in packet.lineage)]
    if not all(_AGENT.fullmatch(one) for one in names):
        raise UntrustedDataError(
            f"{name} contains an invalid agent name", hint="Export it again: agent-relay packet export"
        )


def _read(path: str) -> bytes:
    if path != "-":
        try:
            return read_bounded(path, limit_bytes=LIMIT_BYTES)
        except FileNotFoundError:
            raise WrongUseError(f"there is no {path}", hint="Name a file `packet export` wrote") from None
    data = sys.stdin.buffer.read(LIMIT_BYTES + 1)
    if len(data) > LIMIT_BYTES:
        raise UntrustedDataError(f"the input is larger than {LIMIT_BYTES} bytes")
    return data


_EPOCH = datetime.fromtimestamp(0, UTC)


def build(
    *,
    agent: Annotated[str, typer.Option("--agent", help="The agent that wrote it.")],
    transcript: Annotated[str, typer.Option("--transcript", help="Its file, or a folder that holds it.")],
    target: Annotated[str, typer.Option("--to", help="The agent that will read the packet.")],
    repo: Annotated[
        str, typer.Option("--repo", help="The working tree; by default the transcript's own.")
    ] = "",
    focus: Annotated[str, typer.Option("--focus", help="What to look at first.")] = "",
    as_json: AsJson = False,
) -> None:
    """Build a packet from a native transcript, offline, without a session; nothing is written."""
    packet, text = build_offline(agent, transcript, target, repo=repo, focus=focus)
    if as_json:
        print_json(packet.model_dump(mode="json", by_alias=True, exclude_none=True))
    else:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")


def build_offline(
    agent: str, transcript: str, target: str, *, repo: str = "", focus: str = ""
) -> tuple[ResumePacket, str]:
    """Return the packet from `agent`'s `transcript` to `target`, and the text that the target would read.

    `transcript` is a file or a folder. `repo` is the working tree to read; by default the transcript's own,
    if it still exists. The same transcript gives the same ids. Raises RelayError if it cannot be read or an
    agent is unknown.
    """
    folders = get_folders()
    catalog = read_catalog(folders)
    source, loaded = catalog.get(agent), catalog.get(target)
    spec = source.adapter.transcript
    if spec is None:
        raise ConfigurationError(f"the adapter of {agent} names no transcript reader")
    if not os.path.exists(transcript):
        raise WrongUseError(f"there is no {transcript}", hint="Name the transcript's file, or its folder")
    facts = read_facts(spec.reader, transcript, agent=agent)
    if not (facts.conversation or facts.commands or facts.files or facts.unprocessed_prompt):
        why = facts.unread or f"it contains no prompt or work of {agent}"
        hint = "Name an agent's own transcript, and its agent by --agent; see: agent-relay sessions --native"
        raise RelayError(f"there is no packet to build from {transcript}: {why}", hint=hint)
    cwd = _find_tree(facts, repo)
    config = read_user_config(folders.config)
    allow = build_allow(config.redaction.allow, config.redaction.allow_patterns)
    known = gather_secrets(cwd, os.environ)
    facts = redact_facts(facts, known=known, allow=allow)
    occasion = _build_occasion(facts, source, target, focus=focus)
    tree = read_tree(cwd) if cwd else None
    if tree is not None:
        touched = list_touched(tree.root, None, facts, prefix=occasion.prefix)
        tree = look_up_files(tree, touched)
    packet = build_packet(facts, occasion, tree=tree)
    packet = redact_packet(packet, known=known, allow=allow)
    folder = os.path.dirname(os.path.abspath(transcript))
    render = build_renderer(loaded, folder, has_session=False)
    wanted = config.get_agent(target).budget_tokens
    packet = fit_packet(packet, tokens=wanted or loaded.adapter.budget_tokens, render=render)
    return packet, render(packet)


def _find_tree(facts: Facts, repo: str) -> str:
    if repo:
        if not os.path.isdir(repo):
            raise WrongUseError(f"{repo} is not a folder", hint="Name a working tree")
        return os.path.realpath(repo)
    return facts.cwd if os.path.isabs(facts.cwd) and os.path.isdir(facts.cwd) else ""


def _build_occasion(facts: Facts, source: LoadedAdapter, target: str, *, focus: str) -> PacketContext:
    at = facts.ended_at or facts.started_at or _EPOCH
    seed = hashlib.sha256(f"{facts.agent}\0{facts.native_id}\0{target}".encode()).digest()
    at_ms = max(0, int(at.timestamp() * 1000))
    return PacketContext(
        packet_id=build_ulid(at_ms, seed[:10]),
        session_id=build_ulid(at_ms, seed[10:20]),
        sequence=1,
        at=at,
        previous_agent=facts.agent,
        target_agent=target,
        reason=Reason.RATE_LIMIT if facts.limit_text else Reason.MANUAL,
        focus=focus,
        task="",
        root=facts.cwd,
        prefix=".",
        leg_id="",
        leg_started_at=facts.started_at,
        since=None,
        relay_texts=(source.adapter.deliver.opening,),
    )
