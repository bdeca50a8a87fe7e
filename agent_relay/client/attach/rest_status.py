"""Lay out what a person reads while every agent rests: the first reset, who rests, what can be pressed."""

from agent_relay.client.attach.tty import clean
from agent_relay.domain.moments import parse_moment
from agent_relay.domain.text.plain import count_columns, split_columns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

_APART = "   "
_CHOICE = "Continue with which agent? Press its number; a resting agent is started anyway."
_DAY_S = 86400
_HOUR_S = 3600


class RestStatus:
    """The rest as the daemon reports it; a field of the wrong type is empty."""

    def __init__(self, answer: "dict[str, object]", *, has_leg: bool) -> None:
        found = answer.get("rest")
        rest: dict[str, object] = found if isinstance(found, dict) else {}
        self.has_leg = has_leg
        self.first, self.when = _text(rest, "first"), _text(rest, "when")
        self.plan, self.back = _text(rest, "plan"), _text(rest, "back")
        self.failure = _text(rest, "failure")
        self.until = parse_moment(rest.get("until"))
        self.agreed, self.can_agree = rest.get("agreed") is True, rest.get("can_agree") is True
        rows = rest.get("agents")
        self.agents = [
            (_text(row, "agent"), _text(row, "why"), row.get("can") is True)
            for row in (rows if isinstance(rows, list) else [])
            if isinstance(row, dict)
        ]

    @property
    def others(self) -> "list[tuple[str, str]]":
        """The agents that can be chosen although they rest, with the reason against each; at most nine."""
        return [(name, why) for name, why, can in self.agents if can][:9]


class KeptText:
    """The text that is kept for the agent that continues; `is_shown` if the person asked to see it."""

    def __init__(self, text: str = "", *, is_shown: bool = False) -> None:
        self.text, self.is_shown = text, is_shown

    def describe(self) -> str:
        """Return the line about it, with its keys: how much it is, or what. Empty for no text."""
        if not self.text:
            return ""
        if self.is_shown:
            return _APART.join(
                (f"Kept for the agent that continues: {self.text}", "k hide it", "d discard it")
            )
        many = f"{len(self.text)} typed characters are" if len(self.text) > 1 else "1 typed character is"
        return _APART.join((f"{many} kept for the agent that continues.", "k show it", "d discard it"))


NOTHING_KEPT = KeptText()


def list_lines(
    rest: RestStatus,
    now: "datetime",
    *,
    chooses: bool = False,
    notice: str = "",
    kept: KeptText = NOTHING_KEPT,
) -> "list[str]":
    """Return what to show, a paragraph each: the most important first, the keys last."""
    if chooses:
        named = [f"{at} {name}{f' ({why})' if why else ''}" for at, (name, why) in enumerate(rest.others, 1)]
        return [notice, _CHOICE, *named, "Esc  back"]
    agents = _APART.join(f"{name} {why}" for name, why, _ in rest.agents if why)
    plan = rest.plan if not rest.back else ""
    return [_tell_reset(rest, now), agents, plan, kept.describe(), notice, _list_keys(rest)]


def fit(lines: "Sequence[str]", rows: int, cols: int) -> "list[str]":
    """Return the paragraphs as at most `rows` rows of the terminal, without what there is no room for.

    The first paragraph and the last one stay longest: what this is, and what can be pressed.
    """
    wrapped = [part for line in lines if (part := _wrap(clean(line), max(1, cols - 1)))]
    while len(wrapped) > 2 and sum(map(len, wrapped)) > rows:  # noqa: PLR2004 - the first and the last
        wrapped.pop(-2)
    shown = [row for part in wrapped for row in part]
    return shown[-rows:] if len(shown) > rows else shown


def render_countdown(left_s: float) -> str:
    """Return `2:14:05`, days first if there are any; `0:00:00` when it is over."""
    left = max(0, int(left_s))
    days, left = divmod(left, _DAY_S)
    hours, left = divmod(left, _HOUR_S)
    clock = f"{hours}:{left // 60:02}:{left % 60:02}"
    return f"{days} day{'s' if days > 1 else ''} {clock}" if days else clock


def _tell_reset(rest: RestStatus, now: "datetime") -> str:
    if rest.back and rest.failure:
        return f"No agent took over: {rest.failure}. Press Enter to try {rest.back} again."
    if rest.back:
        return f"{rest.back} is available again. Press Enter to continue."
    if rest.until is None:
        return "Every agent rests, and no reset is known."
    whose = f"{rest.first} at {rest.when}" if rest.first else rest.when
    return (
        f"Every agent rests. First reset: {whose}, in {render_countdown((rest.until - now).total_seconds())}"
    )


def _list_keys(rest: RestStatus) -> str:
    keys = ["Enter continue"] if rest.back else []
    if rest.agreed:
        keys.append("w do not continue at reset")
    elif rest.can_agree:
        keys.append("w continue at reset")
    if rest.can_agree:
        keys.append("a always continue at reset")
    keys += ["n use another agent now"] if rest.others else []
    keys += ["v show its screen"] if rest.has_leg else []
    return _APART.join([*keys, "l leave"])


def _wrap(text: str, cols: int) -> "list[str]":
    """Return `text` in rows of at most `cols` columns: one part below the other, broken between words."""
    if count_columns(text) <= cols:
        return [text] if text.strip() else []
    return [row for part in text.split(_APART) for row in _break(part.strip(), cols)]


def _break(text: str, cols: int) -> "list[str]":
    rows: list[str] = []
    row = ""
    for word in text.split():
        joined = f"{row} {word}" if row else word
        if count_columns(joined) <= cols:
            row = joined
            continue
        rows += [row] if row else []
        *whole, row = split_columns(word, cols)
        rows += whole
    return [*rows, row] if row else rows


def _text(found: "dict[str, object]", key: str) -> str:
    value = found.get(key)
    return value if isinstance(value, str) else ""
