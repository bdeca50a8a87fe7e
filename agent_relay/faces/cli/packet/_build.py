"""Build a packet from a native transcript alone: no session, no daemon, nothing written."""

import hashlib
import os
from datetime import UTC, datetime

from agent_relay.agents.adapters import LoadedAdapter
from agent_relay.agents.catalog import read_catalog
from agent_relay.agents.packet_template import build_renderer
from agent_relay.domain.documents.packet import Reason, ResumePacket
from agent_relay.domain.errors import ConfigurationError, WrongUseError
from agent_relay.domain.facts import Facts
from agent_relay.domain.values.ulid import build_ulid
from agent_relay.packet.budget import fit_packet
from agent_relay.packet.build import PacketContext, build_packet
from agent_relay.redact.allow_list import build_allow
from agent_relay.redact.packet import redact_facts, redact_packet
from agent_relay.sources.transcript_reader import read_facts
from agent_relay.system.config.config_file import read_user_config
from agent_relay.system.config.secrets import gather_secrets
from agent_relay.system.disk.folders import get_folders
from agent_relay.system.git.tree_state import read_tree

_EPOCH = datetime.fromtimestamp(0, UTC)


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
    cwd = _find_tree(facts, repo)
    config = read_user_config(folders.config)
    allow = build_allow(config.redaction.allow, config.redaction.allow_patterns)
    known = gather_secrets(cwd, os.environ)
    facts = redact_facts(facts, known=known, allow=allow)
    occasion = _build_occasion(facts, source, target, focus=focus)
    packet = build_packet(facts, occasion, tree=read_tree(cwd) if cwd else None)
    packet = redact_packet(packet, known=known, allow=allow)
    render = build_renderer(loaded, os.path.dirname(os.path.abspath(transcript)))
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
