"""A session in short with its title, read off journal lines without building the whole session.

`session.fold` is the truth; this is its short form for commands that must start as fast as Python does,
so it imports next to nothing and loads only what a text needs. A test compares both on the same histories.
The title is the task, else the first prompt a person gave, as one short line.
"""

from agent_relay.domain.names import IMPORTED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

TITLE_COLUMNS = 60
"""Widest title, in columns."""
NO_TITLE = "(no prompt seen)"
"""Title of a session without one: nothing was asked yet, or its journal is older than prompts are."""
_SEARCHED = 1000
"""Characters of a text that are looked at: a prompt may be a whole file."""


def make_title(text: str) -> str:
    """Return `text` as one line of at most 60 columns without control characters; empty for none."""
    line = text[:_SEARCHED]
    if not line.isascii() or not line.isprintable():
        line = _clean(line)
    return cut_columns(" ".join(line.split()), TITLE_COLUMNS)


def cut_columns(line: str, most: int) -> str:
    """Return the line if it takes at most `most` columns, else its beginning and an ellipsis."""
    if line.isascii():
        return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
    from agent_relay.domain.text.plain import count_columns

    # Some signs take no column: so many on one line are nobody's words.
    shown = line[: 4 * most]
    if shown == line and count_columns(line) <= most:
        return line
    used, end = 0, 0
    while end < len(shown) and used + count_columns(shown[end]) < most:
        used += count_columns(shown[end])
        end += 1
    return f"{shown[:end].rstrip()}…"


def find_title(known: "tuple[str, str]", name: str, data: "Mapping[str, object]") -> "tuple[str, str]":
    """Return the title after one more line of a journal, and the leg whose next prompt is relay's own.

    `known` is what it was before, `name` and `data` are the event's. The first prompt of a leg that takes
    over is relay's request to go on; a person's prompts come after that.
    """
    title, opened = known
    if title:
        return known
    if name == "leg.starting":
        return "", _text(data, "leg") if _text(data, "handoff") else ""
    if name == "prompt.seen":
        if _text(data, "leg") == opened:
            return "", ""
        return make_title(_text(data, "text")), opened
    if name in {"session.created", "chat.begun"}:
        return make_title(_text(data, "task")), opened
    return (make_title(_text(data, "prompt")), opened) if name == "turn.begun" else known


def _clean(line: str) -> str:
    from agent_relay.domain.text.plain import clean_text

    return "".join(sign if sign.isprintable() else " " for sign in clean_text(line))


def _text(data: "Mapping[str, object]", key: str) -> str:
    found = data.get(key)
    return found if isinstance(found, str) else ""


LIVE = ("starting", "ready", "busy", "asking")
_LEADS_TO = {
    "session.created": "starting",
    "leg.starting": "starting",
    "leg.ready": "ready",
    "leg.busy": "busy",
    "leg.asking": "asking",
    "handoff.begun": "handing-off",
    "handoff.cancelled": "handing-off",
    "session.rested": "resting",
    "session.woke": "ready",
    "session.stopping": "stopping",
    "session.ended": "ended",
    "session.waits": "ready",
    "turn.begun": "starting",
}
_FALLS_TO = {
    "leg.ended": ("stopping", (*LIVE, "stopping")),
    "handoff.failed": ("limited", ("handing-off", "stopping", "limited")),
    "handoff.retried": ("handing-off", ("limited", "resting", "ended")),
}
_HANDOFFS = {
    **{(before, "handoff.begun"): "under-way" for before in ("none", "under-way", "left")},
    **{
        ("under-way", over): "left"
        for over in ("handoff.failed", "session.rested", "session.stopping", "session.ended")
    },
    ("under-way", "handoff.confirmed"): "none",
    ("left", "leg.starting"): "none",
    ("left", "handoff.retried"): "under-way",
}
"""Next state of a handoff that is under way, or that was left and can be resumed."""
_MARKS = ("open", "uncounted", "unpriced", "warn", "spent")
"""Marks of a budget's use, rising."""
_STANDBYS = {"standby.ready": "ready", "standby.dropped": "ending"}
_LIMITS = ({"limit", "silent-limit"}, {"model", "account", "billing"})


def summarize(rows: "Iterable[Mapping[str, object]]") -> "dict[str, object] | None":
    """Return one session in short; `None` if the rows do not begin with one.

    Keys: session, root, cwd, task, title (one line, or empty), state, agent, leg, since and updated_at (ISO
    8601), handoffs, packet (the newest one's text, a relative path), lacks (what it does not tell), why,
    limit (`None`, or agent, scope, until, text), near (the same without scope: a warning), next_agent (who
    would take over then, empty for nobody), standby (`None`, or agent, leg and state: starting, ready or
    ending), refused (`None`, or agent and text: signed out, or its key refused), offered (the preferred agent
    that can be had back), context (`None`, or used, room, level and at: the running agent's when it last
    passed a mark), budgets (those that passed a mark, by name: mark, text, agent, until), headless (whether
    it has, or last had, no screen), owed (the agent of a handoff that has not been worked on), return
    (`None`, or agent, by_itself, why, until: the preferred agent that is available again, and why it does not
    take over), agreed (whether work may go on after this rest) and consent (`None`, or agent, consent, reset,
    user, via, at: by what one last went on unasked: once, always or return, and who agreed to that). An
    imported session that nobody has started has no leg; agent and owed are whom its packet is for.
    """
    view: dict[str, object] | None = None
    handoff, offers, titled = "none", _Offers(), ("", "")
    for row in rows:
        name, data, at = row.get("event"), row.get("data"), row.get("at")
        if not isinstance(name, str) or not isinstance(data, dict):
            continue
        if view is None:
            if name != "session.created":
                continue
            view = begin_summary({key: data.get(key, "") for key in ("session", "root", "cwd", "task")}, at)
        if not titled[0]:
            titled = find_title(titled, name, data)
            view["title"] = titled[0]
        _note_state(view, name, data, at)
        handoff = _HANDOFFS.get((handoff, name), handoff)
        for note in (_note_rest, _note_context, _note_owed, _note_budget, _note_standby):
            note(view, name, data)
        view["offered"] = offers.note(str(view["agent"]), name, data)
        _note_unasked(view, name, data, at)
        if name == "session.moved":
            view["root"], view["cwd"] = data.get("root", ""), data.get("cwd", "")
        view["updated_at"] = at
    if view is not None and view["state"] == "ready" and handoff == "under-way":
        # An agent that waits for its packet is not ready for people.
        view["state"] = "starting"
    return view


def begin_summary(known: "Mapping[str, object]", at: object) -> "dict[str, object]":
    """Return the summary of a session of which only `known` is known, with every key of `summarize`."""
    return {
        "session": "", "root": "", "cwd": "", "task": "", "title": "", "state": "", "agent": "", "leg": "",
        "since": at, "updated_at": at, "handoffs": 0, "packet": "", "lacks": "", "why": "", "limit": None,
        "near": None, "next_agent": "", "standby": None, "refused": None, "offered": "", "context": None,
        "budgets": {}, "headless": False, "owed": "", "return": None, "agreed": False, "consent": None,
        **known,
    }  # fmt: skip


def _note_state(view: "dict[str, object]", name: str, data: "Mapping[str, object]", at: object) -> None:
    state = _LEADS_TO.get(name)
    if state is None and name in _FALLS_TO:
        target, sources = _FALLS_TO[name]
        state = target if view["state"] in sources else None
    if name == "signal.seen" and _is_limit(data):
        view["limit"] = {key: data.get(key, "") for key in ("agent", "scope", "until", "text")}
        state = "limited" if view["state"] in LIVE else None
    if state is not None and state != view["state"]:
        view["state"], view["since"] = state, at
    if name == "turn.begun":
        view["why"], view["headless"] = "", True
    elif name == "leg.starting":
        view["headless"] = data.get("headless") is True


class _Offers:
    """The agent that is available again: a preferred one offered back, or one that is back after a rest."""

    __slots__ = ("_given", "_model", "_offer")

    def __init__(self) -> None:
        self._given = self._offer = self._model = ""

    def note(self, agent: str, name: str, data: "Mapping[str, object]") -> str:
        """Return the agent that is offered after one more line; `agent` is the one at work."""
        if name == "leg.starting":
            self._model, self._offer = str(data.get("model") or ""), ""
        elif name == "return.offered":
            self._given = self._offer = str(data.get("agent") or "")
        elif name == "return.put-off" and self._given == data.get("agent"):
            self._given = self._offer = ""
        elif name == "session.rested":
            self._offer = ""
        elif name == "session.woke":
            self._offer = agent if data.get("offers") is True else ""
        elif name == "leg.busy" and self._offer == agent and not self._model:
            self._offer = ""
        elif name == "signal.seen" and _is_limit(data) and self._given == data.get("agent"):
            self._given = self._offer = ""
        return self._offer


def _note_rest(view: "dict[str, object]", name: str, data: "Mapping[str, object]") -> None:
    if name == "leg.starting":
        view["agent"], view["leg"], view["why"] = data.get("agent", ""), data.get("leg", ""), ""
        view["near"], view["next_agent"], view["refused"] = None, "", None
    elif name == "leg.answered" and data.get("leg") == view["leg"]:
        view["refused"] = None
    elif name == "signal.seen" and data.get("scope") == "auth":
        if data.get("decides") and data.get("agent") == view["agent"]:
            view["refused"] = {key: data.get(key, "") for key in ("agent", "text")}
    elif name == "signal.seen" and data.get("decides") and data.get("scope") == "warning":
        view["near"] = {key: data.get(key, "") for key in ("agent", "until", "text")}
    elif name in {"successor.chosen", "near-limit.ended"} and data.get("leg") == view["leg"]:
        view["next_agent"] = data.get("agent", "")
        view["near"] = view["near"] if name == "successor.chosen" else None
    elif name in {"packet.published", "packet.saved"}:
        view["packet"], view["lacks"] = data.get("text_path", ""), data.get("lacks", "")
    elif name == "handoff.confirmed":
        view["handoffs"] = int(str(view["handoffs"])) + 1
    elif name in {"session.rested", "session.ended", "session.stopping", "handoff.failed"}:
        view["why"] = data.get("why") or view["why"]


def _note_unasked(view: "dict[str, object]", name: str, data: "Mapping[str, object]", at: object) -> None:
    """Note what goes on, or back, by itself, and who agreed to it."""
    if name in {"return.offered", "return.put-off"}:
        known = {key: data.get(key, "") for key in ("agent", "why", "until")}
        view["return"] = known | {"by_itself": data.get("by_itself") is True}
    elif name == "resume.agreed":
        view["agreed"] = data.get("agreed") is not False
    elif name == "consent.used":
        view["consent"] = {key: data.get(key, "") for key in ("agent", "consent", "reset", "user", "via")} | {
            "at": at
        }
    elif name in {"leg.starting", "session.woke"}:
        view["agreed"] = False
        view["return"] = view["return"] if name == "session.woke" else None


def _note_owed(view: "dict[str, object]", name: str, data: "Mapping[str, object]") -> None:
    """Note the agent of a handoff until it works: nothing but its packet has what it needs to know."""
    if name == "handoff.begun":
        view["owed"] = data.get("to_agent", "")
    elif name in {"handoff.confirmed", "handoff.cancelled"} or (
        name == "leg.starting" and not data.get("handoff")
    ):
        view["owed"] = ""
    elif name == "packet.saved" and view["agent"] == IMPORTED:
        view["agent"] = view["owed"] = data.get("target", "")
        view["leg"] = ""


def _note_context(view: "dict[str, object]", name: str, data: "Mapping[str, object]") -> None:
    if name == "leg.starting":
        view["context"] = None
    elif name == "context.noted" and data.get("leg") == view["leg"]:
        known = {key: data.get(key, 0) for key in ("used", "room", "level")}
        view["context"] = known | {"at": data.get("read_at", "")}


def _note_budget(view: "dict[str, object]", name: str, data: "Mapping[str, object]") -> None:
    budgets = view["budgets"]
    if name == "budget.noted" and isinstance(budgets, dict) and data.get("mark") in _MARKS:
        known = {key: data.get(key, "") for key in ("mark", "text", "agent", "until")}
        view["budgets"] = {**budgets, str(data.get("budget", "")): known}


def list_budgets(view: "Mapping[str, object]", agent: str, now: "datetime") -> "list[dict[str, object]]":
    """Return the budgets of a summary that `agent` uses of, that passed a mark and whose day is not over."""
    from datetime import datetime

    budgets, found = view.get("budgets"), list[dict[str, object]]()
    for budget, known in budgets.items() if isinstance(budgets, dict) else ():
        try:
            is_over = bool(known["until"]) and datetime.fromisoformat(known["until"]) <= now
        except (ValueError, TypeError):
            continue
        whose = known["agent"] or view["agent"]
        if not is_over and known["mark"] != "open" and whose == agent:
            found.append({"budget": budget, **known})
    return found


def _note_standby(view: "dict[str, object]", name: str, data: "Mapping[str, object]") -> None:
    """Note the agent that was started ahead, until it takes over or is gone."""
    ahead = view["standby"]
    if name == "standby.starting":
        known = {key: data.get(key, "") for key in ("agent", "leg")}
        view["standby"] = known | {"state": "starting"}
    elif isinstance(ahead, dict) and ahead["leg"] == data.get("leg"):
        if name in {"leg.starting", "standby.ended"}:
            view["standby"] = None
        elif name in _STANDBYS and ahead["state"] != "ending":
            view["standby"] = ahead | {"state": _STANDBYS[name]}


def _is_limit(data: "Mapping[str, object]") -> bool:
    kinds, scopes = _LIMITS
    return bool(data.get("decides")) and data.get("kind") in kinds and data.get("scope") in scopes
