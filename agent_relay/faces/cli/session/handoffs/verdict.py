"""`agent-relay handoff complete` and `fail`: judge a handoff, with the evidence."""

import os
import sys
from typing import Annotated

import typer

from agent_relay.client.autostart import ask_daemon
from agent_relay.domain.errors import WrongUseError
from agent_relay.domain.protocol.handoff_report import BLOCKER_KINDS
from agent_relay.faces.cli.session.handoffs.evidence import render_criterion
from agent_relay.faces.cli.session.handoffs.records import find_record
from agent_relay.faces.cli.typer_runner import AsJson
from agent_relay.faces.render.output import get_contents, get_rows, print_either
from agent_relay.system.disk.folders import get_folders

_ANSWER_S = 60.0
_CHECK_S = 300
_LONGEST_CHECK_S = 7 * 24 * 3600

Handoff = Annotated[str, typer.Argument(help="The handoff's id, or the beginning or end of it.")]
Note = Annotated[str, typer.Option("--note", help="A note to record with the verdict.")]
_Texts = list[str] | None
_EXAMPLES = {
    "--met": '--met "1=ran the program: it opens"',
    "--unmet": '--unmet "1=ran the program: it is stuck"',
    "--blocker": '--blocker "access=no key to the shed=the key"',
}
_Deliverables = Annotated[
    _Texts, typer.Option("--deliverable", help="A deliverable that now exists; repeatable.")
]
_Met = Annotated[
    _Texts,
    typer.Option(
        "--met",
        metavar="CRITERION=HOW",
        help="CRITERION=HOW: a criterion that is met (its number or text), and how you checked it.",
    ),
]
_Unmet = Annotated[
    _Texts,
    typer.Option(
        "--unmet",
        metavar="CRITERION=HOW",
        help="CRITERION=HOW: a criterion that is not met, and how you checked it.",
    ),
]
_Completed = Annotated[
    _Texts, typer.Option("--completed", help="A part of the task that is done; repeatable.")
]
_Incomplete = Annotated[
    _Texts, typer.Option("--incomplete", help="A part of the task that is not done; repeatable.")
]
_Blockers = Annotated[
    _Texts,
    typer.Option(
        "--blocker",
        metavar="KIND=TEXT=REQUIRED",
        help="KIND=TEXT=REQUIRED: what blocks the task, and what would unblock it. KIND is one of"
        f" {', '.join(BLOCKER_KINDS)}.",
    ),
]
_Questions = Annotated[_Texts, typer.Option("--question", help="An open question; repeatable.")]
_Next = Annotated[str, typer.Option("--next", help="What should be done next.")]
_Skips = Annotated[bool, typer.Option("--skip-checks", help="Do not run the handoff's check commands.")]
_Proposed = Annotated[
    bool, typer.Option("--run-proposed", help="Also run check commands that an agent proposed.")
]
_Limit = Annotated[
    int, typer.Option("--limit", min=1, max=_LONGEST_CHECK_S, help="Time limit for each command, in seconds.")
]


def complete(
    handoff: Handoff,
    *,
    note: Note = "",
    deliverable: _Deliverables = None,
    met: _Met = None,
    unmet: _Unmet = None,
    completed: _Completed = None,
    incomplete: _Incomplete = None,
    blocker: _Blockers = None,
    question: _Questions = None,
    suggested: _Next = "",
    skip_checks: _Skips = False,
    run_proposed: _Proposed = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Complete the handoff even if a criterion is not met.")
    ] = False,
    limit_s: _Limit = _CHECK_S,
    as_json: AsJson = False,
) -> int:
    """Mark a handoff as completed.

    Its check commands (--check) are run first, in the session's folder. If a criterion is not met, the
    handoff stays open and the exit status is 1. Ctrl-C cancels the running command.
    """
    report = _build_report(
        deliverable=deliverable,
        met=met,
        unmet=unmet,
        completed=completed,
        incomplete=incomplete,
        blocker=blocker,
        question=question,
        suggested=suggested,
    )
    choices: dict[str, object] = {
        "skip_checks": skip_checks, "run_proposed": run_proposed, "anyway": anyway, "check_limit_s": limit_s
    }  # fmt: skip
    return _judge(handoff, "completed", note, report, choices, as_json=as_json)


def fail(
    handoff: Handoff,
    *,
    note: Note = "",
    deliverable: _Deliverables = None,
    met: _Met = None,
    unmet: _Unmet = None,
    completed: _Completed = None,
    incomplete: _Incomplete = None,
    blocker: _Blockers = None,
    question: _Questions = None,
    suggested: _Next = "",
    run_checks: Annotated[
        bool, typer.Option("--run-checks", help="Run the handoff's check commands.")
    ] = False,
    run_proposed: _Proposed = False,
    limit_s: _Limit = _CHECK_S,
    as_json: AsJson = False,
) -> int:
    """Mark a handoff as failed; its rollback agent, if it has one, takes over with what was achieved."""
    report = _build_report(
        deliverable=deliverable,
        met=met,
        unmet=unmet,
        completed=completed,
        incomplete=incomplete,
        blocker=blocker,
        question=question,
        suggested=suggested,
    )
    choices: dict[str, object] = {
        "skip_checks": not (run_checks or run_proposed),
        "run_proposed": run_proposed,
        "check_limit_s": limit_s,
    }  # fmt: skip
    return _judge(handoff, "failed", note, report, choices, as_json=as_json)


def _build_report(
    *,
    deliverable: _Texts,
    met: _Texts,
    unmet: _Texts,
    completed: _Texts,
    incomplete: _Texts,
    blocker: _Texts,
    question: _Texts,
    suggested: str,
) -> dict[str, object]:
    """Return the report as the operation takes it; raise WrongUseError for an incomplete pair."""
    criteria = [
        {"criterion": criterion.strip(), "met": option == "--met", "how": how.strip()}
        for option, given in (("--met", met), ("--unmet", unmet))
        for criterion, how in (_split(option, "CRITERION=HOW", text) for text in given or ())
    ]
    blockers = []
    for given in blocker or ():
        kind, rest = _split("--blocker", "KIND=TEXT=REQUIRED", given)
        text, _, required = rest.partition("=")
        blockers.append({"kind": kind.strip(), "text": text.strip(), "requires": required.strip()})
    return {
        "deliverables": deliverable or [],
        "criteria": criteria,
        "completed": completed or [],
        "incomplete": incomplete or [],
        "blockers": blockers,
        "questions": question or [],
        "suggested_next": suggested,
    }


def _split(option: str, form: str, given: str) -> tuple[str, str]:
    """Return the text before and after the first equals sign; raise WrongUseError if there is none."""
    first, equals, second = given.partition("=")
    if not (equals and first.strip() and second.strip()):
        raise WrongUseError(f"{option} needs both halves of {form}", hint=f"Example: {_EXAMPLES[option]}")
    return first, second


def _judge(
    handoff: str,
    verdict: str,
    note: str,
    report: dict[str, object],
    choices: dict[str, object],
    *,
    as_json: bool,
) -> int:
    """Have the daemon judge the handoff, and print its answer; return 1 if it stays open."""
    chain, record = find_record(handoff)
    folders, terms = get_folders(), record.terms
    commands = (*terms.checks, *(terms.proposed_checks if choices.get("run_proposed") else ()))
    runs = 0 if choices.get("skip_checks") else len(commands)
    limit = choices["check_limit_s"]
    assert isinstance(limit, int)  # noqa: S101 - made above
    if runs and sys.stderr.isatty():
        sys.stderr.write(f"Running {'; '.join(map(ascii, commands))} (Ctrl-C cancels) …\n")
    env = dict(os.environ)
    try:
        answer = get_contents(
            ask_daemon(
                folders,
                "handoff.close",
                limit_s=_ANSWER_S + runs * (limit + _ANSWER_S),
                session=chain.session,
                handoff=record.id,
                note=note,
                env=env,
                verdict=verdict,
                report=report,
                **choices,
            )
        )
    except KeyboardInterrupt:
        ask_daemon(folders, "handoff.checks.cancel", session=chain.session, handoff=record.id)
        raise
    criteria = [render_criterion(one) for one in get_rows(answer, "criteria")]
    print_either(answer, *criteria, str(answer.get("message", "")), as_json=as_json)
    return 0 if answer.get("closed", True) else 1
