"""`agent-relay replay`: run the detector on a recorded session, as one JSON object."""

import json
import os
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import typer

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import load_adapter, load_rules
from agent_relay.detect.detector import Detector
from agent_relay.domain.documents.rules import Rules
from agent_relay.domain.errors import ConfigurationError, WrongUseError
from agent_relay.domain.limits import Record, Signal
from agent_relay.domain.moments import parse_moment
from agent_relay.domain.values import AgentName
from agent_relay.faces.cli.options import UsageError
from agent_relay.sources.recording import read_evidence, read_recording
from agent_relay.sources.replay import Timing, find_start, keep_best, play
from agent_relay.system.clock import LocalZone
from agent_relay.terminal.emulation.emulator import Emulator
from agent_relay.terminal.emulation.library import find_library

_WHOLE = 0


def replay_recording(
    recording: str,
    *,
    agent: str,
    rules: Rules,
    size: tuple[int, int] | None = None,
    chunk: int = _WHOLE,
    transcript: str | None = None,
    started_at: datetime | None = None,
    zone: tzinfo = UTC,
) -> dict[str, object]:
    """Return the detector's findings about a recording as JSON values, the same for any `chunk` (0: whole).

    Without `transcript` the screen is the only evidence and every finding is listed. With it (a native
    transcript, or the folder of a run) records and screens are played in one timeline, and only the signals
    that would act are listed. A notice on the screen then acts if its rule lets it be corroborated: the
    newest prompt is unanswered, and the notice's words occur nowhere in the leg's records. `started_at` is
    the leg's start; if unknown, it is found by what was typed, or calculated back from the newest record or
    the file's date. Raises RelayError.
    """
    library = find_library()
    if library is None:
        raise ConfigurationError(
            "there is no terminal emulator for this platform", hint="Install pyghostty 0.1.3."
        )
    read = read_recording(recording)
    records = read_evidence(transcript) if transcript is not None else ()
    found = find_start(records, typed=read.typed, length_s=read.timing.length_s)
    start = started_at or found or read.started_at
    detector = Detector(rules, agent=AgentName(agent), started_at=start, zone=zone, hold_s=0)
    for record in records:
        detector.recall(record)
    cols, rows = size or (read.cols, read.rows)
    signals = play(
        _chop(read.data, chunk),
        total=len(read.data),
        timing=read.timing if read.timing.length_s else Timing(length_s=_find_length(records, start)),
        emulator=Emulator(library, cols, rows),
        detector=detector,
        records=records,
        started_at=start,
    )
    if transcript is not None:
        signals = tuple(signal for signal in signals if signal.decides)
    return {"agent": agent, "signals": [_render(signal) for signal in keep_best(signals)]}


def replay(
    recording: Annotated[str, typer.Argument(help="Its file, or the folder of a run.")],
    *,
    agent: Annotated[str, typer.Option("--agent", help="The agent whose screen was recorded.")],
    size: Annotated[
        str, typer.Option("--size", help="COLSxROWS; otherwise as the recording's own files or name say.")
    ] = "",
    chunk: Annotated[int, typer.Option("--chunk", help="Bytes a read; the result is the same.")] = _WHOLE,
    transcript: Annotated[
        str, typer.Option("--transcript", help="Native transcript of the run, a file or a folder.")
    ] = "",
    started_at: Annotated[
        str, typer.Option("--started-at", help="When the leg began, ISO 8601 with a zone.")
    ] = "",
    zone: Annotated[
        str, typer.Option("--zone", help="The zone the agent printed times in, as Europe/Warsaw.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="On one line.")] = False,
) -> None:
    """Run the detector on a recorded session; print its findings as one JSON object."""
    found = replay_recording(
        recording,
        agent=agent,
        rules=_load_rules(agent),
        size=_parse_size(size) if size else None,
        chunk=chunk,
        transcript=transcript or None,
        started_at=_parse_moment(started_at) if started_at else None,
        zone=_parse_zone(zone or os.environ.get("TZ", "")),
    )
    sys.stdout.write(json.dumps(found, ensure_ascii=False, indent=None if as_json else 2) + "\n")


def _find_length(records: Sequence[Record], start: datetime) -> float:
    """Return how long a leg of unknown length lasted at least, in seconds: until its newest record."""
    newest = max((record.at for record in records if record.at is not None), default=start)
    return max(0.0, (newest - start).total_seconds())


def _load_rules(agent: str) -> Rules:
    folder = os.path.join(find_builtin_folder(), agent)
    if os.sep in agent or not os.path.isdir(folder):
        raise WrongUseError(f"there is no agent {agent!r}", hint="See: agent-relay agents")
    return load_rules(load_adapter(folder, origin="built-in"))


def _chop(data: bytes, chunk: int) -> Iterator[bytes]:
    if chunk <= _WHOLE:
        yield data
        return
    for start in range(0, len(data), chunk):
        yield data[start : start + chunk]


def _render(signal: Signal) -> dict[str, object]:
    return {
        "kind": signal.kind,
        "scope": signal.scope,
        "resets_at": signal.resets_at.astimezone(UTC).isoformat() if signal.resets_at else None,
        "at_offset": signal.at_offset,
        "decides": signal.decides,
        "rule": signal.rule,
        "model": signal.model or None,
        "evidence": {"source": signal.evidence.source, "text": signal.evidence.text},
    }


def _parse_size(text: str) -> tuple[int, int]:
    cols, _, rows = text.lower().partition("x")
    if not (cols.isdigit() and rows.isdigit() and 0 < int(cols) <= 1000 and 0 < int(rows) <= 1000):  # noqa: PLR2004 - no terminal is larger
        raise UsageError(f"invalid --size {text[:20]!r}", hint="Write COLSxROWS, as 120x40", command="replay")
    return int(cols), int(rows)


def _parse_moment(text: str) -> datetime:
    moment = parse_moment(text)
    if moment is None:
        raise UsageError(
            f"invalid --started-at {text[:40]!r}", hint="Write 2026-11-20T10:31:00+00:00", command="replay"
        )
    return moment


def _parse_zone(name: str) -> tzinfo:
    if not name:
        return LocalZone()
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise UsageError(
            f"there is no time zone {name[:40]!r}", hint="Write a name like Europe/Warsaw", command="replay"
        ) from None
