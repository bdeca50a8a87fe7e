"""Keep the handoff document an agent wrote in its session's folder until a packet includes it."""

import json
import os
from dataclasses import asdict, dataclass, fields
from datetime import datetime

from agent_relay.domain.errors import RelayError
from agent_relay.domain.values.project_layout import get_resume_folder
from agent_relay.store.packets import locked
from agent_relay.system.disk.files import cannot_write, read_bounded, write_atomic

_NARRATIVE = "narrative.json"
_NARRATIVE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class NarrativeDocument:
    """A redacted document, and the leg whose agent wrote it.

    `at` is for people to read; `moment` is the same in ISO 8601, empty in documents of older versions.
    """

    leg: str
    agent: str
    at: str
    focus: str
    text: str
    moment: str = ""


def write_narrative(folder: str, kept: NarrativeDocument) -> None:
    """Write the session's document; raise RelayError, with an older one untouched, on failure."""
    write_atomic(os.path.join(folder, _NARRATIVE), json.dumps(asdict(kept), ensure_ascii=False).encode())


def read_narrative(folder: str, leg: str) -> NarrativeDocument | None:
    """Return what the agent of `leg` wrote; `None` if it wrote nothing that can be read."""
    try:
        found = json.loads(read_bounded(os.path.join(folder, _NARRATIVE), limit_bytes=_NARRATIVE_BYTES))
    except (RelayError, FileNotFoundError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("leg") != leg:
        return None
    known = {field.name: found.get(field.name, "") for field in fields(NarrativeDocument)}
    if not all(isinstance(value, str) for value in known.values()) or not (known["text"] and known["at"]):
        return None
    return NarrativeDocument(**known)


def save_beside_packets(folder: str, text: str, at: datetime) -> str:
    """Write the document to a file of its own in session `folder`; return its path. Raise RelayError."""
    resume = get_resume_folder(folder)
    path = os.path.join(resume, f"handoff-{at:%Y%m%dT%H%M%SZ}.md")
    try:
        # Whoever publishes takes away what others have not finished there.
        with locked(resume):
            write_atomic(path, f"{text}\n".encode(), durable=False)
    except OSError as error:
        raise cannot_write(path, error) from error
    return path
