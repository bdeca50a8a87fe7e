"""Lay a view out on a grid of any size: styled lines, the same number whatever is shown.

Lines are wrapped between words, or cut so that no number is shown in part.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from agent_relay.domain.moments import render_day
from agent_relay.domain.protocol.watch_output import SessionTold
from agent_relay.domain.text.plain import render_count
from agent_relay.faces.render.output import HintStyle, plain
from agent_relay.faces.watch.lines import (
    NO_DAEMON_TEXT,
    NO_SESSION_TEXT,
    get_mark,
    render_clock,
    render_context,
    render_rest,
    render_short,
    render_tokens,
    render_told,
    render_turn,
    render_unknown_rests,
    render_window,
)
from agent_relay.faces.watch.view import SessionView, View
from agent_relay.session.views.summary import NO_TITLE

_WORD = re.compile(r"\S+")
_LONGEST_NUMBER = 24
"""Most characters of a number that people read; a longer word is a path or a digest."""


def wrap(line: Text, width: int, *, most: int = 2**31) -> list[Text]:
    """Return the line's words on lines of at most `width` cells; a longer word has a line of its own.

    If that takes more than `most` lines, the last one ends with `…`.
    """
    lines: list[Text] = []
    begin = end = 0
    for word in _WORD.finditer(line.plain):
        if cell_len(line.plain[begin : word.end()]) > width:
            # Before the first word there is nothing but what indents it.
            lines += [line[begin:end]] if end > begin else []
            begin = word.start()
        end = word.end()
    lines.append(line[begin:end])
    if len(lines) > most:
        lines = lines[:most]
        lines[-1].append(" …")
    return lines


def cut(line: Text, width: int) -> None:
    """Cut `line` to at most `width` cells; leave out a number that would be cut, or end where it is cut."""
    whole = line.plain
    if cell_len(whole) <= width:
        return
    kept = set_cell_size(whole, max(0, width - 1))
    at = max(kept.rfind(" "), kept.rfind("\u00a0")) + 1
    word = _WORD.match(whole, at)
    is_number = word is not None and len(word[0]) <= _LONGEST_NUMBER and any(map(str.isdigit, word[0]))
    line.plain = f"{kept[:at] if is_number else kept}…"[: max(0, width)]


_STYLES = {
    "busy": "green", "ready": "cyan", "asking": "yellow", "limited": "red", "resting": "red",
    "handing-off": "magenta", "starting": "blue",
}  # fmt: skip
_STEP_STYLES = {"in_progress": "bold", "completed": "dim", "cancelled": "dim"}
_BAR = 16
_WIDE = 140
"""Fewest columns at which the screen is shown beside the rest."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Everything a drawing needs besides the view: its size, the session chosen, the moment and its zone."""

    rows: int
    cols: int
    chosen: str
    now: datetime
    zone: tzinfo
    is_plain: bool = False


def draw(view: View, frame: Frame) -> list[Text]:
    """Return `frame.rows` lines of at most `frame.cols` cells."""
    lines = [_draw_head(view, frame)]
    if not view.is_daemon_here:
        lines.append(Text(NO_DAEMON_TEXT, style="bold red"))
    problems = (*view.problems[:2], render_unknown_rests(view.rests_unknown))
    lines += [Text(plain(problem), style="red") for problem in problems if problem]
    rests = [plain(render_rest(rest, frame.now, frame.zone)) for rest in view.resting[:3]]
    lines += [Text(rest, style="yellow") for rest in rests]
    if not view.sessions:
        lines += [Text(), Text(NO_SESSION_TEXT)]
    elif len(view.sessions) > 1:
        lines += _draw_table(view.sessions, frame)
    session = find_chosen(view, frame.chosen)
    if session is not None:
        lines += _draw_session(session, frame, max(1, frame.rows - len(lines) - 1))
    lines = lines[: frame.rows - 1]
    lines += [Text()] * (frame.rows - 1 - len(lines))
    lines.append(
        Text(" ↑↓ session   q quit" if not frame.is_plain else " arrows: session   q: quit", style="dim")
    )
    for line in lines:
        cut(line, frame.cols)
    return lines[: frame.rows]


def find_chosen(view: View, chosen: str) -> SessionView | None:
    """Return the session `chosen`, else the first one; `None` if there is none."""
    found = [one for one in view.sessions if one.now.session == chosen]
    return next(iter(found or view.sessions), None)


def choose_next(view: View, chosen: str, step: int) -> str:
    """Return the id of the session `step` places from the chosen one, wrapping around at the ends."""
    ids = [one.now.session for one in view.sessions]
    if not ids:
        return ""
    place = ids.index(chosen) if chosen in ids else 0
    return ids[(place + step) % len(ids)]


def _draw_head(view: View, frame: Frame) -> Text:
    count = len(view.sessions)
    left = f" agent-relay watch   {render_count(count, 'session')}"
    right = f"{frame.now.astimezone(frame.zone):%H:%M} "
    gap = max(1, frame.cols - cell_len(left) - cell_len(right))
    return Text(f"{left}{' ' * gap}{right}", style="reverse")


def _draw_table(sessions: Sequence[SessionView], frame: Frame) -> list[Text]:
    """Return a line for each session, as many as a quarter of the rows hold, around the chosen one."""
    room = max(2, frame.rows // 4)
    ids = [one.now.session for one in sessions]
    place = ids.index(frame.chosen) if frame.chosen in ids else 0
    begin = max(0, min(place - room // 2, len(sessions) - room))
    shown = sessions[begin : begin + room]
    lines = [_draw_row(one.now, frame, is_chosen=index == place) for index, one in enumerate(shown, begin)]
    hidden = len(sessions) - len(shown)
    return [*lines, *([Text(f"   and {hidden} more", style="dim")] if hidden else [])]


def _draw_row(now: SessionTold, frame: Frame, *, is_chosen: bool) -> Text:
    mark = (">" if frame.is_plain else "▶") if is_chosen else " "
    clock = render_clock(now.turn_since, frame.now) or _render_since(now, frame)
    tokens = render_short(now.tokens.total) if now.tokens is not None else "-"
    full = f"{now.context.percent}%" if now.context is not None and now.context.percent is not None else "-"
    line = Text(f" {mark} ")
    line.append(f"{now.state:<11} ", style=_STYLES.get(now.state, "dim"))
    line.append(f"{plain(now.agent) or '-':<10} {clock:>15} {tokens:>6} {full:>4}  ")
    told = " · ".join(text for text in (HintStyle.render(now.about), now.title or NO_TITLE) if text)
    line.append(plain(told), style="" if is_chosen else "dim")
    return line


def _draw_session(session: SessionView, frame: Frame, rows: int) -> list[Text]:
    """Return the chosen session on `rows` lines: figures first, then plan, what happened, and its screen."""
    screen = session.screen.rows if session.screen is not None else ()
    is_beside = frame.cols >= _WIDE and bool(screen)
    head = _draw_figures(session.now, frame, frame.cols // 2 - 2 if is_beside else frame.cols)[:rows]
    left = rows - len(head)
    plan = _draw_plan(session.now, frame, max(2, left // 4))[:left]
    left -= len(plan)
    if is_beside:
        return _put_beside([*head, *plan, *_draw_told(session, frame, left)], screen, frame.cols)
    told = _draw_told(session, frame, max(left // 3, left - len(screen) - 1) if screen else left)[:left]
    left -= len(told)
    shown = screen[-max(0, left - 1) :] if left > 1 else ()
    box = [_draw_rule("screen", frame.cols), *(Text(plain(row)) for row in shown)] if shown else []
    return [*head, *plan, *told, *box]


def _draw_figures(now: SessionTold, frame: Frame, cols: int) -> list[Text]:
    """Return who works since when, what should be known, and what was used, on as many lines as needed."""
    title = " · ".join(plain(word) for word in (now.agent or "no agent", now.model) if word)
    line = Text(f"{title} ", style="bold")
    line.append(f"{now.state} ", style=f"bold {_STYLES.get(now.state, 'dim')}")
    line.append(" · ".join(_list_counts(now, frame)))
    lines, most = wrap(line, cols), max(1, frame.rows // 4)
    lines.append(Text(plain(now.task or now.title or NO_TITLE), style="italic"))
    if now.about:
        lines += wrap(Text(plain(HintStyle.render(now.about)), style="yellow"), cols, most=most)
    if now.trouble:
        lines += wrap(Text(plain(now.trouble), style="red"), cols, most=most)
    if now.tokens is not None:
        lines += wrap(Text(render_tokens(now.tokens)), cols)
    if now.context is not None:
        lines.append(Text(render_context(now.context, width=_BAR, is_plain=frame.is_plain)))
    lines += [
        Text(plain(render_window(one, frame.now, frame.zone, width=_BAR, is_plain=frame.is_plain)))
        for one in now.windows[:4]
    ]
    return [_draw_rule(now.session, frame.cols), *lines]


def _list_counts(now: SessionTold, frame: Frame) -> list[str]:
    turn = render_turn(now, frame.now)
    counts = [turn or f"since {_render_since(now, frame)}"]
    counts += [render_count(now.handoffs, "handoff")] if now.handoffs else []
    counts += [render_count(now.limits, "limit")] if now.limits else []
    return [*counts, f"handoff {now.handoff}"] if now.handoff else counts


def _render_since(now: SessionTold, frame: Frame) -> str:
    """Return since when a session is in its state: a moment, because a clock would be redrawn for ever."""
    return render_day(datetime.fromisoformat(now.since), frame.now, frame.zone)


def _draw_plan(now: SessionTold, frame: Frame, room: int) -> list[Text]:
    """Return the plan around its first open step: a heading that counts, then as many steps as fit."""
    if not now.plan:
        return []
    done = sum(step.status == "completed" for step in now.plan)
    begin = next((at for at, step in enumerate(now.plan) if step.status == "in_progress"), done)
    begin = max(0, min(begin - 1, len(now.plan) - (room - 1)))
    return [
        _draw_rule(f"plan {done}/{len(now.plan)}", frame.cols),
        *(
            Text(
                f"{get_mark(step.status, is_plain=frame.is_plain)} {plain(step.text)}",
                style=_STEP_STYLES.get(step.status, ""),
            )
            for step in now.plan[begin : begin + room - 1]
        ),
    ]


def _draw_told(session: SessionView, frame: Frame, room: int) -> list[Text]:
    """Return the newest events, the oldest of them first."""
    told = session.told[-(room - 1) :] if room > 1 else ()
    lines = [Text(plain(render_told(event, frame.now, frame.zone))) for event in told]
    return [_draw_rule("what happened", frame.cols), *lines] if lines else []


def _draw_rule(title: str, cols: int) -> Text:
    return Text(f"── {title} {'─' * cols}"[:cols], style="dim")


def _put_beside(left: Sequence[Text], screen: Sequence[str], cols: int) -> list[Text]:
    """Return the lines on the left half, the screen on the right one."""
    half = cols // 2
    lines = []
    for index in range(max(len(left), min(len(screen), len(left) or len(screen)))):
        line = left[index].copy() if index < len(left) else Text()
        cut(line, half - 2)
        line.pad_right(half - 2 - line.cell_len)
        line.append("│ ", style="dim")
        line.append(plain(screen[index]) if index < len(screen) else "", style="")
        lines.append(line)
    return lines
