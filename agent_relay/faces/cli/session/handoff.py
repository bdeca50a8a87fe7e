"""`agent-relay handoff`, `relay`, `undo-handoff`: show handoffs, intervene in one, make or undo one."""

import os
import sys
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import asdict

from agent_relay.client.autostart import ask_daemon, connect_or_start
from agent_relay.client.pending_answers import WRITING_LIMIT_S
from agent_relay.domain.errors import RelayError, WrongUseError
from agent_relay.domain.names import get_journal_path
from agent_relay.faces.cli.commands import COMMANDS
from agent_relay.faces.cli.options import OPEN_LIMIT_S
from agent_relay.faces.cli.session.agent import run_agent
from agent_relay.faces.cli.session.attach import follow, has_terminal, measure
from agent_relay.faces.cli.session.handoffs.evidence import list_criteria
from agent_relay.faces.cli.session.handoffs.records import (
    Lineage,
    build_full,
    build_row,
    choose_lineage,
    choose_lineages,
    estimate,
    find_record,
    gather_usage,
    get_now,
    list_full,
    read_timeline,
    read_uses,
    render_estimate,
)
from agent_relay.faces.cli.session.handoffs.verdict import Handoff, Note, complete, fail
from agent_relay.faces.cli.session.lookup import choose_here, choose_running, find_root_here
from agent_relay.faces.cli.typer_runner import AsJson, Functions, run_functions
from agent_relay.faces.render.output import (
    get_contents,
    get_rows,
    get_table,
    get_width,
    is_plain_output,
    print_contents,
    print_either,
    print_json,
    print_lines,
    print_table,
    render_moment,
    render_reset,
)
from agent_relay.store.journal import read_session
from agent_relay.store.session_index import find_near_root
from agent_relay.system.disk.folders import get_cwd, get_folders
from agent_relay.usage.packet_use import PacketUse, build_packet_use

if TYPE_CHECKING:
    from agent_relay.domain.protocol.timeline import TimelineTold

RunningSession = Annotated[
    str, typer.Argument(help="Its id, or its beginning or end; by default the one that runs here.")
]


def narrative(
    session: RunningSession = "",
    *,
    focus: Annotated[str, typer.Option("--focus", help="What the document should say most about.")] = "",
    as_json: Annotated[
        bool, typer.Option("--json", help="As JSON: {session, outcome, message, text}.")
    ] = False,
) -> None:
    """Have the agent write a handoff document, in a fork of its session; the next packet takes it along.

    This alone hands nothing over. Ctrl-C cancels it. Also: agent-relay handoff --narrative.
    """
    folders = get_folders()
    chosen = str(choose_running(folders, session)["session"])
    if sys.stderr.isatty():
        sys.stderr.write("The agent writes a handoff document; Ctrl-C cancels.\n")
    try:
        answer = ask_daemon(folders, "narrate", limit_s=WRITING_LIMIT_S, session=chosen, focus=focus)
    except KeyboardInterrupt:
        ask_daemon(folders, "narrate.cancel", session=chosen)
        raise
    written = answer.get("outcome") == "written"
    if as_json:
        keys = ("outcome", "message", "text")
        print_json({"session": chosen, **{key: answer.get(key, "") for key in keys}})
    elif written:
        print_contents(*str(answer.get("text", "")).splitlines())
    else:
        raise RelayError(str(answer.get("message", "")))


Session = Annotated[
    str, typer.Option("--session", help="That session only: its id, or its beginning or end.")
]
_LIMIT_S = 60.0


def run_handoff(words: list[str]) -> int:
    """Run `agent-relay handoff`; return its exit status."""
    if "--narrative" in words:
        words = ["narrative", *(word for word in words if word != "--narrative")]
    return run_functions(HANDOFF, words, name="handoff", about=COMMANDS["handoff"].about)


def show_open(
    *,
    session: Session = "",
    everything: Annotated[bool, typer.Option("--all", help="Finished ones too.")] = False,
    agent: Annotated[str, typer.Option("--for", help="Only handoffs to this agent.")] = "",
    as_json: AsJson = False,
) -> None:
    """List the open handoffs: running ones, and those whose expected results were not confirmed yet."""
    now = get_now()
    every = [(chain, record) for chain in choose_lineages(session) for record in chain.registry.records]
    if agent and all(agent != record.to_agent for _, record in every):
        from agent_relay.agents.catalog import read_catalog

        read_catalog(get_folders(), root=find_near_root(get_cwd())).get(agent)
    found = [
        build_row(chain, record, now)
        for chain, record in every
        if (everything or record.is_open) and agent in {"", record.to_agent}
    ]
    found.sort(key=lambda row: str(row["began_at"]), reverse=True)
    if as_json:
        print_json({"handoffs": found})
        return
    rows = [
        [
            str(row["status"]),
            f"{row['from']} → {row['to']}",
            str(row["priority"] or "-"),
            render_moment(row["began_at"]),
            str(row["handoff"]),
            _render_expected(row) or str(row["note"] or row["why"]),
            str(row["root"]),
        ]
        for row in found
    ]
    headers = ("status", "from → to", "priority", "began", "handoff", "about", "where")
    print_table(headers, rows, empty="No handoff is open.")


def show(handoff: Handoff, *, as_json: AsJson = False) -> None:
    """Show one handoff in full: agents, status, duration, what was transferred and expected, checks."""
    chain, record = find_record(handoff)
    view = build_full(chain, record)
    print_either(view, *list_full(view), as_json=as_json)


def history(
    session: Annotated[
        str, typer.Argument(help="A session's id, or one end; by default the newest here.")
    ] = "",
    *,
    as_json: AsJson = False,
) -> None:
    """Show a session over time and as a tree: its legs, the handoffs from them, and what became of each."""
    chain = choose_lineage(session)
    gathered = gather_usage(chain)
    uses, timeline = read_uses(chain, gathered), read_timeline(chain, gathered)
    now = get_now()
    if not as_json:
        _print_history(chain, uses, timeline, now)
        return
    legs = [
        {
            "leg": leg.id,
            "agent": leg.agent,
            "handoff": leg.handoff,
            "resumes": leg.resumes,
            "began_at": leg.began_at.isoformat(),
            "ended_at": leg.ended_at.isoformat() if leg.ended_at else "",
            "how": leg.how,
        }
        for leg in chain.registry.legs
    ]
    handoffs = [
        {
            **build_row(chain, record, now),
            "from_leg": record.from_leg,
            "criteria": list_criteria(record),
            "packet_use": build_packet_use(uses[record.id]) if record.id in uses else None,
        }
        for record in chain.registry.records
    ]
    told = timeline.model_dump(mode="json", exclude={"type"}) if timeline is not None else None
    view = {"session": chain.session, "root": chain.root, "legs": legs, "handoffs": handoffs}
    print_json({**view, "timeline": told})


def _print_history(
    chain: Lineage, uses: Mapping[str, PacketUse], timeline: "TimelineTold | None", now: datetime
) -> None:
    # The models of a timeline take long to load, and no other command here shows one.
    from agent_relay.faces.cli.session.handoffs.drawing import draw_lineage, draw_timeline

    if timeline is not None:
        is_plain = is_plain_output()
        print_contents(*draw_timeline(timeline, now, None, width=get_width(), is_plain=is_plain), "")
    print_lines(*draw_lineage(chain, uses, timeline))


def plan(
    *,
    session: Annotated[str, typer.Option("--session", help="This one instead of the newest here.")] = "",
    needs: Annotated[
        list[str] | None, typer.Option("--needs", help="What the agent must be able to do.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show which agent a handoff would go to now, and why not to the others. Changes nothing."""
    chain = choose_lineage(session)
    view = _request("handoff.plan", session=chain.session, needs=needs or [])
    successor = str(view["successor"])
    view["estimate"] = asdict(estimate(successor)) if successor else None
    if as_json:
        print_json(view)
        return
    columns = ("place", "agent", "verdict", "why")
    rows = [[str(row[name]) for name in columns] for row in get_rows(view, "agents")]
    print_table(("place", "agent", "verdict", "because"), rows, empty="The order is empty.")
    if successor:
        print_lines(f"Estimate {render_estimate(get_table(view, 'estimate'), successor)}.")
    else:
        earliest = render_reset(view["earliest"], assumed=view.get("assumed") is True)
        print_lines(f"No other agent is available{f' before {earliest}' if earliest else ''}.")


def retry(
    handoff: Handoff,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Also if its target rests.")] = False,
    as_json: AsJson = False,
) -> None:
    """Resume a failed or cancelled handoff where it stopped, with the packet it had.

    On a terminal, this then attaches to its successor.
    """
    session = _act("handoff.retry", handoff, as_json=as_json, yes=yes)
    if as_json or not has_terminal():
        return
    folders = get_folders()
    connection = connect_or_start(folders)
    raise typer.Exit(follow(folders, connection, connection.request("where", session=session)))


def cancel(handoff: Handoff, *, note: Note = "", as_json: AsJson = False) -> None:
    """Cancel a running handoff. Its predecessor has ended by then: the session rests with its packet."""
    _act("handoff.cancel", handoff, as_json=as_json, note=note)


def _act(operation: str, handoff: str, *, as_json: bool, **fields: object) -> str:
    """Have the daemon do `operation` to the handoff and print its answer; return the handoff's session."""
    chain, record = find_record(handoff)
    view = _request(operation, session=chain.session, handoff=record.id, **fields)
    print_either(view, str(view.get("message", "")), as_json=as_json)
    return chain.session


def _request(operation: str, **fields: object) -> dict[str, object]:
    return get_contents(
        ask_daemon(get_folders(), operation, limit_s=_LIMIT_S, env=dict(os.environ), **fields)
    )


def _render_expected(row: dict[str, object]) -> str:
    wanted = get_table(row, "expectations")
    return "; ".join(
        str(text)
        for name in ("deliverables", "acceptance_criteria", "checks")
        for text in get_rows(wanted, name)
    )


HANDOFF: Functions = {
    "list": show_open,
    "show": show,
    "history": history,
    "plan": plan,
    "retry": retry,
    "cancel": cancel,
    "complete": complete,
    "fail": fail,
    "narrative": narrative,
}
"""The functions by sub-command."""


def relay(
    session: RunningSession = "",
    *,
    focus: Annotated[str, typer.Option("--focus", help="What the next agent should look at first.")] = "",
    document: Annotated[
        bool, typer.Option("--narrative", help="The agent at work writes a handoff document first.")
    ] = False,
    digest: Annotated[
        bool, typer.Option("--digest", help="The next agent sums up the record first, without tools.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: where the session is.")] = False,
) -> None:
    """Hand a session at work to the next agent of your order that can take over."""
    folders = get_folders()
    chosen = str(choose_running(folders, session)["session"])
    with connect_or_start(folders) as connection:
        connection.request("where", session=chosen, root=find_root_here())
        if document:
            written = connection.request("narrate", limit_s=WRITING_LIMIT_S, session=chosen, focus=focus)
            if written.get("outcome") not in {"written", "unable"}:
                print_either(get_contents(written), str(written.get("message", "")), as_json=as_json)
                raise typer.Exit(1)
        answer = connection.request(
            "use", limit_s=_LIMIT_S, session=chosen, agent="", focus=focus, digest=digest
        )
    line = str(answer.get("message") or f"Session {chosen} passes to the next agent.")
    notes = [str(answer["note"])] if answer.get("note") else []
    print_either(get_contents(answer), line, *notes, as_json=as_json)


_LIVE = {"starting", "ready", "busy", "asking"}


def undo_handoff(
    session: Annotated[
        str, typer.Argument(help="Its id, or its beginning or end; by default the newest here.")
    ] = "",
    *,
    as_json: Annotated[bool, typer.Option("--json", help="As JSON: where the session is.")] = False,
) -> int:
    """Hand a session back to the agent it was with before its last handoff.

    That agent goes on in its own conversation and reads what was done meanwhile. No work is undone.
    """
    folders = get_folders()
    view = choose_here(folders, session)
    chosen = str(view["session"])
    agent = find_predecessor(str(view["root"]), chosen)
    rows, cols = measure()
    lives = view["state"] in _LIVE
    if not lives and not as_json and has_terminal():
        return run_agent(agent, ["--session", chosen])
    with connect_or_start(folders) as connection:
        if lives:
            answer = connection.request("use", session=chosen, agent=agent)
        else:
            # Behind the relay key the terminal is the attached one, which shows whoever comes.
            fields = {"cwd": get_cwd(), "env": dict(os.environ), "rows": rows, "cols": cols}
            answer = connection.request("open", limit_s=OPEN_LIMIT_S, agent=agent, session=chosen, **fields)
    print_either(get_contents(answer), f"→ Handing session {chosen} back to {agent}.", as_json=as_json)
    return 0


def find_predecessor(root: str, session: str) -> str:
    """Return the agent before the session's last handoff; raise WrongUseError if there was none."""
    path = get_journal_path(root, session)
    try:
        found = read_session(path)
    except FileNotFoundError:
        found = None
    made = found.done if found is not None else ()
    if not made:
        raise WrongUseError(f"session {session} has had no handoff", hint="See: agent-relay handoff history")
    return made[-1].from_agent
