"""Read from a settled screen what an agent is doing and whether its input line is empty.

What the agent reports itself counts, too: its window title, the state it announces, its state file.
"""

from collections.abc import Mapping
from typing import Literal

from agent_relay.domain.documents.record_matching import compile_pattern, is_meant, squeeze
from agent_relay.domain.documents.rules import InputLine, Rules, ScreenState, StateRule
from agent_relay.domain.screen import Screen

AgentState = ScreenState | Literal["unknown"]


def read_state(
    rules: Rules, screen: Screen, *, state_record: Mapping[str, object] | None = None, is_new: bool = False
) -> AgentState:
    """Return the state by the first rule that matches, `unknown` if none does.

    `screen` is settled and carries the window title and the state the agent announced in band;
    `state_record` is the newest record of the agent's own state file, `None` if it keeps none; `is_new`
    is whether the leg began only a moment ago.
    """
    texts = [row.text.replace("\u00a0", " ") for row in screen.rows if row.text.strip()]
    for rule in rules.states:
        if rule.announced and is_new and not screen.agent_state:
            continue
        if _matches(rule, screen, texts, state_record):
            return rule.state
    return "unknown"


def believe_state(rules: Rules, state: AgentState, *, had_turns: bool) -> AgentState:
    """Return `starting` for an agent busy before its first turn, say with its tool servers; else `state`.

    `had_turns` is whether the leg waited for a prompt before, or was seen to take one. An agent whose
    records contain no prompts is believed.
    """
    hears_prompts = any(sign.means == "prompt" for sign in rules.progress)
    return "starting" if state == "busy" and hears_prompts and not had_turns else state


def match_state(rule: StateRule, text: str) -> bool:
    """Return whether one row, title or announced state shows this rule's sign."""
    if not rule.pattern or compile_pattern(rule.pattern).search(text) is None:
        return False
    return not rule.unless or compile_pattern(rule.unless).search(text) is None


def _matches(rule: StateRule, screen: Screen, texts: list[str], record: Mapping[str, object] | None) -> bool:
    match rule.source:
        case "title":
            return match_state(rule, screen.title)
        case "terminal":
            return match_state(rule, screen.agent_state)
        case "state-file":
            return record is not None and is_meant(rule.where, record)
        case _:
            return _is_shown(rule, texts)


def _is_shown(rule: StateRule, texts: list[str]) -> bool:
    rows = texts[-rule.rows :] if rule.rows else texts
    if rule.unless and any(compile_pattern(rule.unless).search(text) for text in rows):
        return False
    pattern = compile_pattern(rule.pattern)
    return any(pattern.search(text) for text in rows)


InputState = Literal["empty", "typed", "hidden"]


def read_input(rules: Rules, screen: Screen) -> InputState:
    """Return whether the line people type into is empty or half typed; `hidden` if it is not shown."""
    line = rules.input
    if line is None:
        return "hidden"
    rows = _find_input(line, [row.text.replace("\u00a0", " ") for row in screen.rows])
    if not rows:
        return "hidden"
    typed = any(
        text and not _is_hint(line, text) and screen.rows[row].color not in line.hint_colours
        for row, text in rows
    )
    return "typed" if typed else "empty"


def _find_input(line: InputLine, texts: list[str]) -> list[tuple[int, str]]:
    pattern = compile_pattern(line.row)
    if not line.anchor:
        last = next((row for row in reversed(range(len(texts))) if pattern.search(texts[row])), None)
        return [] if last is None else [(last, _typed(line, texts[last]))]
    anchor = compile_pattern(line.anchor)
    below = next((row for row in reversed(range(len(texts))) if anchor.search(texts[row])), None)
    found: list[tuple[int, str]] = []
    if below is None:
        return found
    for row in range(below - 1, max(-1, below - 1 - line.rows), -1):
        if not pattern.search(texts[row]):
            break
        found.append((row, _typed(line, texts[row])))
    return found


def _typed(line: InputLine, text: str) -> str:
    match = compile_pattern(line.row).search(text)
    return squeeze(match["typed"] or "") if match is not None else ""


def _is_hint(line: InputLine, text: str) -> bool:
    return bool(line.hint) and compile_pattern(line.hint).fullmatch(text) is not None
