"""The document an agent wrote of its own work: the newest one counts, and a packet has it whole."""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from agent_relay.agents.adapter_folders import find_builtin_folder
from agent_relay.agents.adapters import build_renderer, load_adapter
from agent_relay.domain.documents.packet import Provenance, ResumePacket
from agent_relay.domain.documents.packet_json import parse_packet, render_document
from agent_relay.domain.facts import CommandRun, Facts, Message
from agent_relay.domain.values import replace
from agent_relay.packet.budget import fit_packet
from agent_relay.packet.build import build_packet
from agent_relay.packet.narrative import OwnDocument, place_narrative, render_narrative
from agent_relay.redact.packet import redact_facts, redact_packet
from tests.session.first_leg import OCCASION, SECOND

AT = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)
OCCASION_AT = replace(OCCASION, at=AT + timedelta(hours=2))
HEADINGS = (
    "Goal", "Rules of the user", "Decisions in force", "Given up or disproved", "State on disk",
    "Failing now", "Files and roles", "Next step", "Not to be believed",
)  # fmt: skip


def write_document(length: int = 4000) -> str:
    """A document of about `length` characters, no line of it twice."""
    lines = [f"Line {number}: the cache of part {number} took {number * 7} ms." for number in range(99)]
    parts = [f"## {name}\n" + "\n".join(lines[at * 11 : at * 11 + 11]) for at, name in enumerate(HEADINGS)]
    return "\n\n".join(parts)[:length].rstrip()


def talk(turns: int = 40) -> Facts:
    """A long conversation, most of it talk, with commands that failed."""
    said = []
    runs = []
    for turn in range(1, turns + 1):
        at = AT + timedelta(minutes=turn)
        ask = f"actually, part {turn} must not use redis because it would need a server of its own there"
        tell = (
            f"I decided to use the {turn}th table because it is fast. I tried part {turn}, but it failed. "
            * 6
        )
        said += [
            Message("user", ask, turn, at, f"t:{turn}"),
            Message("assistant", tell, turn, at, f"t:{turn}"),
        ]
        runs.append(
            CommandRun(f"pytest -q part{turn}", f"E   AssertionError: part {turn} " * 20, 1, turn, at)
        )
    return Facts(agent="alpha", transcript="t", conversation=tuple(said), commands=tuple(runs))


def keep(facts: Facts, text: str, *, at: datetime) -> OwnDocument:
    """The document `text` as it was kept at `at`, for a packet made from `facts`."""
    moment = at.isoformat()
    shown = render_narrative(text, "then", moment, facts=facts, now=OCCASION_AT.at, fresh_prompts=100)
    return OwnDocument(shown, place_narrative("alpha", moment, facts))


def find_own(packet: ResumePacket) -> tuple[str, str, int | None]:
    """The first and last line of a packet's document, and the turn where it stands."""
    assert packet.narrative is not None
    assert packet.narrative_source is not None
    lines = packet.narrative.splitlines()
    return lines[0], lines[-1], packet.narrative_source.turn


def test_a_requested_document_has_the_position_of_the_prompt_before_it() -> None:
    """The ledger then covers just the later turns, which the document cannot know."""
    facts = talk(4)
    packet = build_packet(facts, OCCASION_AT, written=keep(facts, "## Goal", at=AT + timedelta(minutes=3)))
    assert packet.narrative_source == Provenance(
        agent="alpha", transcript="t", turn=3, at=AT + timedelta(minutes=3)
    )
    assert find_own(packet)[0].endswith("1 later prompt is not covered)")
    assert parse_packet(render_document(packet)).narrative_source == packet.narrative_source


def test_a_document_written_before_anything_was_said_is_at_turn_zero() -> None:
    """It is known to cover nothing, which is not the same as unknown."""
    assert place_narrative("alpha", AT.isoformat(), talk(2)).turn == 0
    assert place_narrative("alpha", AT.isoformat(), Facts("alpha")).turn is None
    undated = Facts("alpha", conversation=(Message("user", "go", 1), Message("assistant", "done", 1)))
    assert place_narrative("alpha", AT.isoformat(), undated).turn is None
    assert place_narrative("alpha", "", talk(2)).turn is None


def test_a_compactions_summary_says_when_it_was_written() -> None:
    """The successor must know what happened after it."""
    facts = replace(talk(4), summary="We cache.", summary_turn=2, summary_at=AT + timedelta(minutes=2))
    age = (
        "(written when its conversation was compacted, 2026-11-22 09:02 UTC; 118 min before this packet;"
        " 2 later prompts are not covered)"
    )
    assert find_own(build_packet(facts, OCCASION_AT)) == (age, "We cache.", 2)


@pytest.mark.parametrize(("asked_at", "newest"), [(1, "compacted"), (3, "asked")])
def test_the_newer_of_summary_and_document_counts(asked_at: int, newest: str) -> None:
    """They are two sources of one thing; the older one knows less."""
    facts = replace(talk(4), summary="compacted", summary_turn=2, summary_at=AT + timedelta(minutes=2))
    written = keep(facts, "asked", at=AT + timedelta(minutes=asked_at))
    assert find_own(build_packet(facts, OCCASION_AT, written=written))[1] == newest


def test_a_document_that_is_no_longer_fresh_leaves_the_summary() -> None:
    """What was left out for its age is not there to be compared."""
    facts = replace(talk(4), summary="compacted", summary_turn=2, summary_at=AT + timedelta(minutes=2))
    stale = OwnDocument("", place_narrative("alpha", (AT + timedelta(minutes=3)).isoformat(), facts))
    assert find_own(build_packet(facts, OCCASION_AT, written=stale))[1] == "compacted"
    assert build_packet(talk(4), OCCASION_AT, written=stale).narrative is None


def test_the_next_leg_hands_an_earlier_document_on_as_that_agents() -> None:
    """How old it was for the packet before says nothing now, and it knows nothing of the leg between."""
    facts = talk(4)
    first = build_packet(facts, OCCASION_AT, written=keep(facts, "## Goal", at=AT + timedelta(minutes=3)))
    second = build_packet(Facts(agent="beta"), SECOND, previous=first)
    assert second.narrative == "(written 2026-11-22 09:03 UTC by alpha, before beta went on)\n\n## Goal"
    assert second.narrative_source == first.narrative_source
    third = build_packet(Facts(agent="gamma"), replace(SECOND, previous_agent="gamma"), previous=second)
    assert third.narrative == "(written 2026-11-22 09:03 UTC by alpha, before gamma went on)\n\n## Goal"


def test_an_earlier_document_of_the_agents_knows_nothing_of_its_second_conversation() -> None:
    """Its prompts are counted from one again: those of the first are not meant."""
    first = build_packet(talk(4), OCCASION_AT, written=keep(talk(4), "## Goal", at=AT + timedelta(minutes=4)))
    said = tuple(replace(one, place="later:1") for one in talk(2).conversation)
    again = replace(talk(2), transcript="later", conversation=said)
    packet = build_packet(again, replace(SECOND, previous_agent="alpha"), previous=first)
    assert packet.narrative_source == first.narrative_source
    told = [one.source.turn for one in packet.exchanges if one.source and one.source.transcript == "later:1"]
    assert told == [1, 2]


def test_a_summary_older_than_what_was_handed_over_gives_way_to_it() -> None:
    """An agent that goes on in its old conversation has the summary from before somebody else's work."""
    facts = talk(4)
    first = build_packet(facts, OCCASION_AT, written=keep(facts, "newer", at=AT + timedelta(minutes=3)))
    resumed = Facts(agent="beta", summary="older", summary_turn=1, summary_at=AT)
    assert find_own(build_packet(resumed, SECOND, previous=first))[1] == "newer"


def render_for(agent: str) -> tuple[Callable[[ResumePacket], str], int]:
    """How packets are rendered for `agent`, and how many tokens it is given."""
    loaded = load_adapter(os.path.join(find_builtin_folder(), agent))
    return build_renderer(loaded, "/p/.agent-relay/sessions/s"), loaded.adapter.budget_tokens


def read_whole(packet: ResumePacket, agent: str) -> str:
    """The packet's text for `agent`, as it is after secrets and what does not fit are gone."""
    render, tokens = render_for(agent)
    packet = redact_packet(packet, known=frozenset())
    text = render(fit_packet(packet, tokens=tokens, render=render))
    return "\n".join(line.removeprefix(">").removeprefix(" ") for line in text.splitlines())


@pytest.mark.size("test")
@pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "opencode"])
@pytest.mark.parametrize("kind", ["asked", "compacted"])
def test_four_thousand_characters_arrive_whole(agent: str, kind: str) -> None:
    """One sentence of the agent's own is worth more than ten that were inferred from its words."""
    document = write_document()
    assert 3900 < len(document) <= 4000
    facts = talk()
    at = AT + timedelta(minutes=38)
    if kind == "asked":
        packet = build_packet(facts, OCCASION_AT, written=keep(facts, document, at=at))
    else:
        facts = redact_facts(
            replace(facts, summary=document, summary_turn=38, summary_at=at), known=frozenset()
        )
        packet = build_packet(facts, OCCASION_AT)
    assert document in read_whole(packet, agent)


def test_the_document_is_in_the_json_as_it_was_written() -> None:
    """Other programs read the document, not its rendering."""
    document = write_document()
    facts = talk()
    packet = build_packet(facts, OCCASION_AT, written=keep(facts, document, at=AT + timedelta(minutes=38)))
    render, tokens = render_for("codex")
    fitted = fit_packet(packet, tokens=tokens, render=render)
    assert json.loads(json.dumps(render_document(fitted)))["narrative"].endswith(f"\n\n{document}")


@pytest.mark.size("test")
def test_a_document_is_shortened_only_when_nothing_guessed_is_left() -> None:
    """Even in the smallest packet, what the agent wrote outlives what was inferred from its words."""
    document = write_document(9000) + "\n## End\n" + "x" * 6000
    facts = talk()
    packet = build_packet(facts, OCCASION_AT, written=keep(facts, document, at=AT + timedelta(minutes=38)))
    render, _ = render_for("codex")
    for tokens in (6000, 4000, 3000, 2000, 1000, 500):
        fitted = fit_packet(packet, tokens=tokens, render=render)
        if len(fitted.narrative or "") < 6000:
            guessed = [one for one in fitted.decisions if not one.in_ledger]
            assert (guessed, fitted.attempts, fitted.remarks) == ([], (), ())
            assert len(fitted.exchanges) <= 2
    assert len(fit_packet(packet, tokens=6000, render=render).narrative or "") >= 6000
