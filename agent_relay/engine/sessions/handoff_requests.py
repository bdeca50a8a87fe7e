"""Check what a request says about a handoff: its expectations and its outcome."""

from collections.abc import Collection, Mapping

from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.names import LEG_VARIABLE
from agent_relay.domain.protocol import operations as op
from agent_relay.domain.protocol.handoff_report import (
    BLOCKER_KINDS,
    BlockerReport,
    CriterionReport,
    HandoffReport,
)
from agent_relay.domain.session import PRIORITIES, Handoff, Session, Terms
from agent_relay.domain.text.plain import clean_text

_MOST = 20
_LONGEST = 2000
"""Most characters of an expectation: people and agents read it, and twenty pages belong in a file."""


def build_terms(
    asked: op.HandoffTermsFields,
    *,
    target: str,
    environ: Mapping[str, str] | None = None,
    agent: str = "",
) -> Terms:
    """Return what the request expects of a handoff to `target`; raise WrongUseError for contradictions.

    Commands are an agent's, whatever they are sent as, if an `agent` asks, by its process or a leg's
    environment `environ`; so are those that come without any: no face of ours sends a person's like that.
    """
    checks, proposed = strip_texts("check", asked.check), strip_texts("propose-check", asked.propose_check)
    if agent or environ is None or LEG_VARIABLE in environ:
        checks, proposed = (), (*checks, *proposed)
    terms = Terms(
        deliverables=strip_texts("expect", asked.expect),
        criteria=strip_texts("accept", asked.accept),
        checks=checks,
        proposed_checks=proposed,
        constraints=strip_texts("constraint", asked.constraint),
        priority=asked.priority,
        needs=strip_texts("needs", asked.needs),
        rollback=asked.rollback,
        questions=strip_texts("question", asked.question),
    )
    if terms.priority and terms.priority not in PRIORITIES:
        raise WrongUseError(
            f"there is no priority {terms.priority[:40]!r}", hint=f"Known: {', '.join(PRIORITIES)}"
        )
    if terms.questions and not terms.rollback:
        raise WrongUseError("--question needs a rollback agent to answer it", hint="Add --rollback AGENT")
    if terms.rollback and terms.rollback == target:
        raise WrongUseError(f"{target} cannot be its own rollback agent", hint="Name another one")
    return terms


def build_report(report: HandoffReport) -> HandoffReport:
    """Return the report cleaned, within the journal's limits; raise WrongUseError if it exceeds them.

    A criterion has to come with how it was checked, a blocker with one of the known kinds.
    """
    check_count("criterion", report.criteria)
    check_count("blocker", report.blockers)
    for said in report.criteria:
        if not said.criterion.strip() or not said.how.strip():
            raise WrongUseError(
                "a criterion lacks how it was checked",
                hint="Say what you ran or read, and what it showed",
            )
    for blocker in report.blockers:
        if blocker.kind not in BLOCKER_KINDS:
            raise WrongUseError(
                f"there is no kind of blocker {blocker.kind[:40]!r}",
                hint=f"Known: {', '.join(BLOCKER_KINDS)}",
            )
    return HandoffReport(
        deliverables=strip_texts("deliverable", report.deliverables),
        criteria=tuple(
            CriterionReport(clean_line("criterion", one.criterion), one.met, clean_line("criterion", one.how))
            for one in report.criteria
        ),
        completed=strip_texts("completed", report.completed),
        incomplete=strip_texts("incomplete", report.incomplete),
        blockers=tuple(
            BlockerReport(one.kind, clean_line("blocker", one.text), clean_line("blocker", one.requires))
            for one in report.blockers
        ),
        questions=strip_texts("question", report.questions),
        suggested_next=clean_line("next", report.suggested_next),
    )


def strip_texts(name: str, given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the texts without terminal sequences and surrounding space; raise WrongUseError for too much."""
    check_count(name, given)
    texts = (clean_text(text).strip() for text in given)
    return tuple(_check_length(name, text) for text in texts if text)


def clean_line(name: str, text: str) -> str:
    """Return the text as one line, without terminal sequences; raise WrongUseError if it is too long."""
    return _check_length(name, " ".join(clean_text(_check_length(name, text)).split()))


def check_count(name: str, given: Collection[object]) -> None:
    """Raise WrongUseError if there are more than a journal's line and its readers should hold."""
    if len(given) > _MOST:
        raise _refuse(name)


def _check_length(name: str, text: str) -> str:
    if len(text) > _LONGEST:
        raise _refuse(name)
    return text


def _refuse(name: str) -> WrongUseError:
    return WrongUseError(
        f"--{name} takes at most {_MOST} texts of {_LONGEST} characters", hint="Put the rest into a file"
    )


def find_handoff(session: Session, handoff: str) -> Handoff | None:
    """Return the handoff that can be judged: one that was made, or the one whose packet was delivered."""
    known = (*session.done, *((session.handoff,) if session.handoff is not None else ()))
    return next((one for one in known if one.id == handoff), None)
