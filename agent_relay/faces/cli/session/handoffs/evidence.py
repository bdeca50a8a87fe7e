"""Say what is known of a handoff's criteria and results, and who said so: for JSON, and for people."""

from collections.abc import Mapping

from agent_relay.domain.protocol.handoff_report import RELAY, CriterionVerdict
from agent_relay.domain.text.names import name_asker
from agent_relay.faces.render.output import get_rows, get_table, is_plain_output
from agent_relay.session.handoff_history import HandoffRecord, render_evidence

_TICKS = {CriterionVerdict.MET: "✓", CriterionVerdict.UNMET: "✗", CriterionVerdict.UNCHECKED: "?"}
_PLAIN_TICKS = {CriterionVerdict.MET: "[x]", CriterionVerdict.UNMET: "[ ]", CriterionVerdict.UNCHECKED: "[?]"}
_SHOWN_OUTPUT = 10
"""The number of output lines shown of a failed command."""


def list_criteria(record: HandoffRecord) -> list[dict[str, object]]:
    """Return every criterion in the order people count them, then those that only a report names.

    `kind` is words, command, proposed (a command that an agent named) or reported.
    """
    checked = {one.criterion: render_evidence(one) for one in record.checked}
    terms = record.terms
    kinds = {
        **dict.fromkeys(checked, "reported"),
        **dict.fromkeys(terms.proposed_checks, "proposed"),
        **dict.fromkeys(terms.checks, "command"),
        **dict.fromkeys(terms.criteria, "words"),
    }
    unknown = {"verdict": CriterionVerdict.UNCHECKED.value, "how": "", "by": "", "output": ""}
    return [
        {"criterion": text, "kind": kinds[text], **(unknown | checked.get(text, {}))}
        for text in dict.fromkeys((*terms.all_criteria, *checked))
    ]


def build_result(record: HandoffRecord) -> dict[str, object]:
    """Return what was reported of the handoff's outcome; empty texts and lists for what nobody said."""
    closing = record.closing
    return {
        "verdict": closing.verdict if closing is not None else "",
        "by": closing.by if closing is not None else "",
        "deliverables": list(closing.deliverables) if closing is not None else [],
        "completed": list(closing.completed) if closing is not None else [],
        "incomplete": list(closing.incomplete) if closing is not None else [],
        "blockers": [
            {"kind": one.kind, "text": one.text, "requires": one.requires} for one in record.blockers
        ],
        "questions": list(closing.questions) if closing is not None else [],
        "suggested_next": closing.suggested_next if closing is not None else "",
    }


def build_askers(record: HandoffRecord) -> dict[str, object]:
    """Return who asked for the handoff and who judged it: `None` where nobody did or it is not known."""
    asker, closing = record.asker, record.closing
    asked = {"user": asker.user, "via": asker.via} if asker.via else None
    judged = closing and {"agent": closing.by, "user": closing.user, "via": closing.via}
    return {"asked_by": asked, "judged_by": judged}


def _name_asker(row: Mapping[str, object], key: str) -> str:
    said = get_table(row, key)
    asker = name_asker(str(said.get("user", "")), str(said.get("via", "")))
    return ", ".join(part for part in (str(said.get("agent", "")), asker) if part)


def list_askers(row: Mapping[str, object]) -> list[str]:
    """Return who asked for the handoff and who judged it, in words, as far as they are known."""
    names = {"asked for": _name_asker(row, "asked_by"), "judged": _name_asker(row, "judged_by")}
    return [f"{what} by {name}" for what, name in names.items() if name]


def count_met(record: HandoffRecord) -> tuple[int, int]:
    """Return how many of the handoff's criteria are met, and how many there are."""
    criteria = list_criteria(record)
    return sum(one["verdict"] == CriterionVerdict.MET for one in criteria), len(criteria)


def mark(verdict: str) -> str:
    """Return the tick of a verdict, in a form the output can show."""
    ticks = _PLAIN_TICKS if is_plain_output() else _TICKS
    known = CriterionVerdict(verdict) if verdict in set(CriterionVerdict) else CriterionVerdict.UNCHECKED
    return ticks[known]


def render_criterion(criterion: Mapping[str, object]) -> str:
    """Render one criterion with its tick, who says so and how it was checked."""
    by, how = str(criterion["by"]), str(criterion["how"])
    said = f"{by}: {how}" if by else how
    if not said:
        said = "a command an agent proposed" if criterion.get("kind") == "proposed" else "not checked yet"
    return f"{mark(str(criterion['verdict']))} {_flatten(criterion['criterion'])} ({_flatten(said)})"


def list_evidence_lines(view: Mapping[str, object]) -> list[str]:
    """Return the lines about criteria and results of a handoff's full view, and who asked and judged."""
    result, lines = get_table(view, "result"), list_askers(view)
    for number, one in enumerate(get_rows(view, "criteria"), 1):
        lines.append(f"criterion {number} {render_criterion(one)}")
        if one["verdict"] == CriterionVerdict.UNMET and one["by"] == RELAY:
            printed = str(one["output"]).splitlines()[-_SHOWN_OUTPUT:]
            lines += [f"    {line}" for line in printed]
    for name, word in (
        ("deliverables", "delivered"),
        ("completed", "completed"),
        ("incomplete", "incomplete"),
    ):
        lines += [f"{word}: {_flatten(text)}" for text in get_rows(result, name)]
    for blocker in get_rows(result, "blockers"):
        needed = f"; required: {_flatten(blocker['requires'])}" if blocker["requires"] else ""
        lines.append(f"blocker ({blocker['kind']}): {_flatten(blocker['text'])}{needed}")
    lines += [f"open question: {_flatten(text)}" for text in get_rows(result, "questions")]
    suggested = result.get("suggested_next")
    return [*lines, *([f"suggested next: {_flatten(suggested)}"] if suggested else [])]


def _flatten(text: object) -> str:
    return " ".join(str(text).split())
