"""`agent-relay packet show` and `verify`: read a packet, or check it and score it."""

import os
import sys
from datetime import UTC, datetime
from typing import Annotated

import typer

from agent_relay.domain.documents.handwritten import MistakeError
from agent_relay.domain.documents.packet import ResumePacket
from agent_relay.domain.errors import (
    ConfigurationError,
    ExitCode,
    RelayError,
    UntrustedDataError,
    WrongUseError,
)
from agent_relay.domain.names import JOURNAL
from agent_relay.domain.text.plain import clean_text
from agent_relay.faces.cli.session.lookup import choose_here
from agent_relay.faces.cli.session.packet import (
    FoundPacket,
    Number,
    SessionWord,
    count_kinds,
    find_changes,
    find_fingerprint,
    find_packet,
    get_renderer,
    is_picked_up,
)
from agent_relay.faces.cli.typer_runner import AsJson
from agent_relay.faces.render.output import (
    get_rows,
    get_width,
    print_contents,
    print_either,
    print_json,
    print_lines,
)
from agent_relay.packet.freshness import Planting, Score, score_text
from agent_relay.store.journal import read_session
from agent_relay.store.packets import (
    PUBLISHED,
    find_edited,
    read_as_left,
    read_body,
    read_delivery_text,
    read_document,
    read_packet,
)
from agent_relay.system.clock import SystemClock, create_ulid
from agent_relay.system.config_file import parse_toml, read_user_config
from agent_relay.system.disk.files import read_bounded
from agent_relay.system.disk.folders import get_folders

_LIMIT_BYTES = 4 << 20
_FORM = "A [[fact]] has a kind and says = [words that must be kept]; see tests/corpus."


def show(
    session: SessionWord = "",
    *,
    number: Number = 0,
    as_text: Annotated[
        bool, typer.Option("--text", help="Print exactly what the target reads, with your edits.")
    ] = False,
    now: Annotated[
        bool, typer.Option("--now", help="Preview the packet a handoff would write now; write nothing.")
    ] = False,
    target: Annotated[
        str, typer.Option("--to", help="With --now: the agent to read it; default: the next in the order.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Show what the packet says, where each line comes from, and what was left out.

    Removed secrets and your own edits are listed at the end. With --json, print the document. --now needs no
    handoff: it shows the packet of this moment, from the agent's own record and relay's checkpoints.
    """
    _check_show(now=now, target=target, number=number, as_text=as_text, as_json=as_json)
    if now:
        return _show_now(session, target, as_text=as_text, as_json=as_json)
    from agent_relay.faces.render.packet_view import render_head, render_sections, wrap_line

    found = find_packet(session, number)
    packet = read_packet(found.document)
    if as_json:
        print_json(packet.model_dump(mode="json", by_alias=True, exclude_none=True))
        return None
    edited = find_edited(found.folder, found.sequence, found.target)
    text = _read_text(found, edited)
    if as_text:
        sys.stdout.write(text)
        return None
    left = read_as_left(found.folder, found.sequence, found.target)
    command = f"agent-relay packet show {found.folder.rpartition('/')[2]} -n {found.sequence} --text"
    width = get_width()
    head = render_head(left, text=text, is_picked_up=_ask_picked_up(found, packet), now=datetime.now(UTC))
    print_contents(*(part for line in head for part in wrap_line(line, width)))
    print_lines(f"Word for word: {command}")
    told = render_sections(left, width=width, changes=find_changes(found, left))
    remarks = (part for line in _list_remarks(packet, edited) for part in wrap_line(line, width))
    return print_contents(*told, *remarks)


def _read_text(found: FoundPacket, edited: str) -> str:
    """Return what the target would read: the text as published, or as the user's edits make it."""
    if edited == "nothing":
        return clean_text(read_body(found.folder, found.sequence, found.target))
    render = get_renderer(found)
    return read_delivery_text(found.folder, found.sequence, found.target, render=render).text


def _check_show(*, now: bool, target: str, number: int, as_text: bool, as_json: bool) -> None:
    if as_text and as_json:
        raise WrongUseError("--text and --json cannot be used together", hint="Use one of them")
    if now and number:
        raise WrongUseError("--now and --number cannot be used together", hint="Use one of them")
    if target and not now:
        raise WrongUseError(
            "--to works only with --now: a written packet already has its reader", hint="Add --now"
        )


def _list_remarks(packet: ResumePacket, edited: str) -> list[str]:
    remarks = [f"edited since it was published: {edited}"] if edited != "nothing" else []
    if packet.redactions:
        remarks.append(f"secrets removed: {count_kinds(packet.redactions)}")
    if packet.spared:
        remarks.append(f"spared by your allow-list: {count_kinds(packet.spared)}")
    return ["", *remarks] if remarks else []


def _ask_picked_up(found: FoundPacket, packet: ResumePacket) -> bool | None:
    """Check whether a leg was started on the packet; `None` if the journal cannot tell."""
    try:
        return is_picked_up(found, packet.packet_id)
    except RelayError:
        return None


def _show_now(session: str, target: str, *, as_text: bool, as_json: bool) -> None:
    """Show the packet that a handoff of the session to `target` would write now; nothing is written.

    Raises RelayError if it cannot be built, WrongUseError without a session that an agent has worked in.
    """
    from agent_relay.agents.catalog import read_catalog
    from agent_relay.engine.publishing.packet_pipeline import build_present
    from agent_relay.faces.render.packet_view import render_head, render_sections, wrap_line

    folders = get_folders()
    view = choose_here(folders, session)
    found = read_session(f"{view['folder']}/{JOURNAL}")
    if found is None or found.leg is None:
        raise WrongUseError("no agent has worked in this session yet", hint="See: agent-relay status")
    others = [name for name in found.roster if name != found.agent]
    reader = target or next(iter(others), found.agent)
    catalog = read_catalog(folders, root=found.root)
    for name in (reader, found.agent):
        if name not in catalog:
            raise WrongUseError(f"there is no agent {name[:40]!r} here", hint="See: agent-relay agents --all")
    adapters = {name: catalog.get(name) for name in {reader, found.agent}}
    clock, config = SystemClock(), read_user_config(folders.config)
    at, name = clock.now(), create_ulid(clock)
    built = build_present(
        found, reader, adapters=adapters, config=config, environ=os.environ, at=at, name=name
    )
    if as_json:
        return print_json(built.packet.model_dump(mode="json", by_alias=True, exclude_none=True))
    if as_text:
        sys.stdout.write(built.text)
        return None
    width = get_width()
    head = render_head(built.packet, text=built.text, is_picked_up=None, now=datetime.now(UTC))
    print_contents(*(part for line in head for part in wrap_line(line, width)))
    command = f"agent-relay packet show {found.id} --now --to {reader}"
    print_lines(
        "This is what a handoff would write now. Nothing was written.", f"Word for word: {command} --text"
    )
    return print_contents(*render_sections(built.packet, width=width))


def print_facts_score(facts: str, *, transcript: str, text: str, target: str, as_json: bool) -> int:
    """Print the score of a packet against the file `facts`; return exit status 0 if it is perfect, else 1.

    The packet is the file `text` (what a target reads) if given. Else it is built from `transcript`, or from
    the one the file names, for `target`, or for the transcript's own agent. Raises RelayError.
    """
    planting = read_planting(facts)
    path = transcript or os.path.join(os.path.dirname(facts) or ".", planting.transcript)
    score = score_text(_read(text) if text else _build(planting, path, target), planting)
    print_either(describe(score), *render(score), as_json=as_json)
    return ExitCode.DONE if score.is_perfect else ExitCode.FAILED


def read_planting(path: str) -> Planting:
    """Return the planted facts in the file `path`; raise RelayError if it cannot be read or has none."""
    try:
        return Planting.parse(parse_toml(_read(path), path))
    except ConfigurationError as problem:
        raise WrongUseError(problem.sentence, hint=_FORM) from None
    except MistakeError as problem:
        raise WrongUseError(f"{path} holds no planted facts: {problem}", hint=_FORM) from None


def describe(score: Score) -> dict[str, object]:
    """Return the score as JSON values."""
    return {
        "kinds_found": score.kinds,
        "kinds_planted": len(score.planted),
        "recall": {
            kind: {"found": score.found[kind], "planted": score.planted[kind]} for kind in score.planted
        },
        "missing": [{"kind": fact.kind, "says": list(fact.says)} for fact in score.missing],
        "secrets_found": len(score.leaked),
        "secrets_planted": score.secrets,
        "leaked": list(score.leaked),
        "characters": score.characters,
    }


def render(score: Score) -> list[str]:
    """Return the score as lines for people."""
    lines = [f"{kind:<12}{score.found[kind]}/{score.planted[kind]}" for kind in score.planted]
    lines.append(f"{'kinds':<12}{score.kinds}/{len(score.planted)}")
    lines.append(f"{'secrets':<12}{len(score.leaked)} of {score.secrets} found")
    lines.append(f"{'characters':<12}{score.characters}")
    lines += [f"missing {fact.kind}: {' … '.join(fact.says)}" for fact in score.missing]
    return [*lines, *(f"leaked: {kind}" for kind in score.leaked)]


def _build(planting: Planting, transcript: str, target: str) -> str:
    if not planting.agent or os.path.isdir(transcript):
        lacks = "transcript" if planting.agent else "agent"
        raise WrongUseError(
            f"the file of facts names no {lacks}", hint='Add agent = "…" and transcript = "…".'
        )
    from agent_relay.faces.cli.session.packet_transfer import build_offline

    return build_offline(planting.agent, transcript, target or planting.agent)[1]


def _read(path: str) -> str:
    try:
        return read_bounded(path, limit_bytes=_LIMIT_BYTES).decode("utf-8", "replace")
    except FileNotFoundError as error:
        raise WrongUseError(f"cannot read {path}: {error.strerror}") from error
    except RelayError as error:
        raise WrongUseError(error.sentence) from error


def verify(
    session: SessionWord = "",
    *,
    number: Number = 0,
    facts: Annotated[
        str, typer.Option("--facts", help="Instead: score the packet against the facts in this TOML file.")
    ] = "",
    transcript: Annotated[
        str, typer.Option("--transcript", help="With --facts: build the packet from this one.")
    ] = "",
    text: Annotated[str, typer.Option("--text", help="With --facts: score this text file.")] = "",
    target: Annotated[str, typer.Option("--to", help="With --facts: the agent it is built for.")] = "",
    as_json: AsJson = False,
) -> None:
    """Check a packet: whole, of this session, unedited, and written for the tree as it is now.

    Exit status: 0 all of it holds, 1 it was edited or is stale, 65 it cannot be trusted.
    With --facts, scores a packet by what was planted in its transcript: 0 if nothing is missing.
    """
    if facts:
        raise typer.Exit(
            print_facts_score(facts, transcript=transcript, text=text, target=target, as_json=as_json)
        )
    for option, value in (("--transcript", transcript), ("--text", text), ("--to", target)):
        if value:
            raise WrongUseError(f"{option} needs --facts", hint="It says which facts are looked for.")
    found = find_packet(session, number)
    view = _examine(found)
    print_either(view, *_describe(found, view), as_json=as_json)
    if view["edited"] != "nothing" or view["stale"]:
        raise typer.Exit(ExitCode.FAILED)


def _examine(found: FoundPacket) -> dict[str, object]:
    """Return the findings as JSON values; raise UntrustedDataError if the packet is not this session's."""
    packet = read_packet(found.document)
    seal = find_fingerprint(found, packet.packet_id)
    published = read_document(found.document).get(PUBLISHED)
    if not seal:
        raise UntrustedDataError(
            f"packet {found.sequence} is not named in its session's journal",
            hint="It was put there by something else; a handoff writes a new one.",
        )
    if isinstance(published, dict) and published.get("document") != seal:
        raise UntrustedDataError(
            f"packet {found.sequence} is not the one that its session's journal names",
            hint="See what was changed: agent-relay packet diff",
        )
    return {
        "packet_id": packet.packet_id,
        "sequence": found.sequence,
        "target": found.target,
        "document": found.document,
        "text": found.text,
        "edited": find_edited(found.folder, found.sequence, found.target),
        "picked_up": is_picked_up(found, packet.packet_id),
        "stale": list(find_changes(found, packet)),
        "redactions": {entry.kind: entry.count for entry in packet.redactions},
        "spared": {entry.kind: entry.count for entry in packet.spared},
    }


def _describe(found: FoundPacket, view: dict[str, object]) -> list[str]:
    edited, notes = view["edited"], [f"stale: {note}" for note in get_rows(view, "stale")]
    return [
        f"packet {found.sequence} for {found.target}: complete, and from this session",
        "not edited" if edited == "nothing" else f"edited since it was published: {edited}",
        "picked up" if view["picked_up"] else "not picked up yet",
        *(notes or ["the working tree is as it describes"]),
    ]
