"""Removes secrets from facts before a packet is built of them: an excerpt of half a key looks like no key."""

from dataclasses import replace

from agent_relay.domain.facts import CommandRun, Facts, Said, Step, ToolError
from agent_relay.logic.redact.allow import NOTHING, Allow
from agent_relay.logic.redact.text import redact_text

_SHORTEST_CUT = 300
"""What agents ran and read is only excerpted above this length; shorter texts are whole in a packet."""


def redact_facts(facts: Facts, *, known: frozenset[str] = frozenset(), allow: Allow = NOTHING) -> Facts:
    """The facts with every text without secrets that a packet may quote a part of.

    Whole texts lose theirs with the packet. Takes about 0.3 s for a megabyte of long texts.
    """

    def clean(text: str) -> str:
        return redact_text(text, known=known, allow=allow).text

    def clean_long(text: str) -> str:
        return clean(text) if len(text) > _SHORTEST_CUT else text

    def clean_said(said: Said) -> Said:
        return replace(said, text=clean(said.text))

    def clean_run(run: CommandRun) -> CommandRun:
        return replace(run, command=clean_long(run.command), output=clean_long(run.output))

    def clean_error(error: ToolError) -> ToolError:
        return replace(error, text=clean_long(error.text))

    def clean_step(step: Step) -> Step:
        return replace(step, text=clean(step.text))

    waiting = facts.unprocessed_prompt
    return replace(
        facts,
        conversation=tuple(map(clean_said, facts.conversation)),
        commands=tuple(map(clean_run, facts.commands)),
        errors=tuple(map(clean_error, facts.errors)),
        plan=tuple(map(clean_step, facts.plan)),
        unprocessed_prompt=clean_said(waiting) if waiting else None,
        limit_text=clean(facts.limit_text),
        summary=clean(facts.summary),
        background=tuple(map(clean, facts.background)),
    )
