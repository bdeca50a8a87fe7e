"""Writes made-up logs of two agents, of any size, whose usage is known because it was counted while writing.

Nothing in them is random but by a fixed seed, so that every run writes the same.
"""

import json
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_SEED = 20_261_120
_BEGIN = datetime(2026, 10, 1, 8, 0, tzinfo=UTC)
_WORDS = [f'word{number} of some output, with \\ and " and \n in it' for number in range(40)]
_OUTPUT_BYTES = 9_000
"""What a tool prints on average: it is what most of such a log consists of."""
_TURNS = 60


@dataclass
class Totals:
    """What was used, each answer once."""

    input: int = 0
    cached: int = 0
    written: int = 0
    output: int = 0
    answers: int = 0

    def add(self, counts: tuple[int, int, int, int]) -> None:
        """One more answer: new input, cached, written, output."""
        self.input += counts[0]
        self.cached += counts[1]
        self.written += counts[2]
        self.output += counts[3]
        self.answers += 1


def write_claude(home: str, size: int, *, is_odd: bool) -> Totals:
    """Sessions of about `size` bytes below `home`.

    Every answer stands on two lines that repeat its usage. With `is_odd` the first of them holds a partial
    count of the output, every fourth session is a fork of the one before it, with a copy of its history,
    and every fourth has a subagent's file.
    """
    totals, chance, done, number, history = Totals(), _roll(), 0, 0, list[dict[str, object]]()
    while done < size:
        session = f"{number:08x}-0000-4000-8000-{number:012x}"
        folder = os.path.join(home, ".claude", "projects", f"-work-{number % 20}")
        rows = list(_tell_claude(session, chance, totals, number, is_odd=is_odd))
        if is_odd and number % 4 == 1:
            copied = [row | {"sessionId": session} for row in history]
            done += _write(os.path.join(folder, f"{session}.jsonl"), copied + rows)
        else:
            done += _write(os.path.join(folder, f"{session}.jsonl"), rows)
        if is_odd and number % 4 == 2:
            side = list(_tell_claude(session, chance, totals, number + 500_000, is_odd=True))
            rows_of_side = [row | {"isSidechain": True, "agentId": "a1"} for row in side]
            path = os.path.join(folder, session, "subagents", "agent-a1.jsonl")
            done += _write(path, rows_of_side)
        history, number = rows, number + 1
    return totals


def write_codex(home: str, size: int, *, is_odd: bool) -> Totals:
    """Rollouts of about `size` bytes below `home`.

    Every answer is told by `token_count`, sent twice. With `is_odd` every other session tells it by
    `token_usage_record`, too, and every fourth is a fork that replays the one before it, dated anew.
    """
    totals, chance, done, number, history = Totals(), _roll(), 0, 0, list[dict[str, object]]()
    while done < size:
        at = _BEGIN + timedelta(hours=3 * number)
        thread = f"{number:08x}-1111-7000-8000-{number:012x}"
        folder = os.path.join(
            home, ".codex", "sessions", at.strftime("%Y"), at.strftime("%m"), at.strftime("%d")
        )
        path = os.path.join(folder, f"rollout-{at.strftime('%Y-%m-%dT%H-%M-%S')}-{thread}.jsonl")
        is_fork = is_odd and number % 4 == 1
        meta = {"id": thread, "cwd": f"/repo/{number % 20}", "source": "cli"}
        parent = str(_payload(history[0])["id"]) if is_fork else ""
        head = _line(at, "session_meta", **meta, **({"forked_from_id": parent} if is_fork else {}))
        replay = [row | {"timestamp": head["timestamp"]} for row in history] if is_fork else []
        base = _find_totals(history) if is_fork else (0, 0, 0)
        rows = list(_tell_codex(chance, totals, number, at, base, is_odd=is_odd and number % 2 == 0))
        done += _write(path, [head, *replay, *rows])
        history, number = [head, *rows], number + 1
    return totals


def _roll() -> random.Random:
    return random.Random(_SEED)  # noqa: S311 - the same numbers every time are what is wanted


def _write(path: str, rows: list[dict[str, object]]) -> int:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
        return file.tell()


def _print(chance: random.Random) -> str:
    words = chance.choices(_WORDS, k=2 * _OUTPUT_BYTES * chance.randrange(1, 100) // (100 * 50))
    return " ".join(words)


def _tell_claude(
    session: str, chance: random.Random, totals: Totals, number: int, *, is_odd: bool
) -> Iterator[dict[str, object]]:
    at, count = _BEGIN + timedelta(hours=3 * number % 1000), 0

    def row(kind: str, message: dict[str, object], **more: object) -> dict[str, object]:
        nonlocal at, count
        at, count = at + timedelta(seconds=7), count + 1
        shared = {
            "parentUuid": None,
            "isSidechain": False,
            "message": message,
            "requestId": message.get("request"),
        }
        own = {"type": kind, "uuid": f"{session[:8]}-{number}-{count}", "timestamp": _iso(at)}
        place = {
            "cwd": f"/repo/{number % 20}",
            "sessionId": session,
            "version": "2.1.197",
            "gitBranch": "main",
        }
        return shared | more | own | place

    for turn in range(_TURNS):
        if turn % 6 == 0:
            yield row("user", {"role": "user", "content": f"prompt {turn}"}, promptSource="typed")
        counts = (chance.randrange(3, 900), chance.randrange(9_000, 90_000), chance.randrange(0, 9_000), 0)
        output = chance.randrange(20, 2_000)
        totals.add((*counts[:3], output))
        name = f"msg_{number:06d}_{turn:04d}"
        told = chance.randrange(1, 9) if is_odd else output
        for part, count_told in enumerate((told, output)):
            message = _answer(name, (*counts[:3], count_told), part, _print(chance)[:400])
            yield row("assistant", message)
        result = {"tool_use_id": "t", "type": "tool_result", "content": _print(chance)}
        yield row("user", {"role": "user", "content": [result]}, toolUseResult={"stdout": _print(chance)})


def _answer(name: str, counts: tuple[int, int, int, int], part: int, text: str) -> dict[str, object]:
    """One of the two lines of an answer: words, then a tool's call, both with the usage so far."""
    content = [{"type": "text", "text": text}, {"type": "tool_use", "id": "t", "name": "Bash"}][part]
    usage = {
        "input_tokens": counts[0],
        "cache_creation_input_tokens": counts[2],
        "cache_read_input_tokens": counts[1],
        "output_tokens": counts[3],
        "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": counts[2]},
    }
    head: dict[str, object] = {"id": name, "type": "message", "role": "assistant", "content": [content]}
    return head | {"model": "claude-opus-4-8", "usage": usage, "request": name.replace("msg", "req")}


def _tell_codex(
    chance: random.Random,
    totals: Totals,
    number: int,
    at: datetime,
    base: tuple[int, int, int],
    *,
    is_odd: bool,
) -> Iterator[dict[str, object]]:
    size, cached, output = base
    for turn in range(_TURNS):
        at += timedelta(seconds=40)
        if turn % 6 == 0:
            yield _line(at, "turn_context", model="gpt-5.5", cwd="/work")
            yield _line(at, "event_msg", type="user_message", message=f"prompt {turn}")
        counts = (chance.randrange(100, 9_000), chance.randrange(9_000, 90_000), chance.randrange(20, 2_000))
        totals.add((counts[0], counts[1], 0, counts[2]))
        size, cached, output = size + counts[0] + counts[1], cached + counts[1], output + counts[2]
        last, total = _usage(counts[0] + counts[1], counts[1], counts[2]), _usage(size, cached, output)
        yield _line(at, "response_item", type="function_call_output", call_id="c", output=_print(chance))
        yield _line(
            at, "event_msg", type="item_completed", item={"type": "CommandExecution", "out": _print(chance)}
        )
        if is_odd:
            response = f"resp_{number:06d}_{turn:04d}"
            yield _line(at, "token_usage_record", response_id=response, usage=last, thread_token_usage=total)
        for _ in range(2):
            info = {"total_token_usage": total, "last_token_usage": last, "model_context_window": 258_400}
            yield _line(at, "event_msg", type="token_count", info=info, rate_limits=None)


def _find_totals(rows: list[dict[str, object]]) -> tuple[int, int, int]:
    """Where a rollout's totals ended: its fork goes on from there."""
    info = _payload(rows[-1])["info"]
    total: dict[str, int] = info["total_token_usage"] if isinstance(info, dict) else {}
    return total["input_tokens"], total["cached_input_tokens"], total["output_tokens"]


def _usage(size: int, cached: int, output: int) -> dict[str, int]:
    return {
        "input_tokens": size,
        "cached_input_tokens": cached,
        "cache_write_input_tokens": 0,
        "output_tokens": output,
        "reasoning_output_tokens": output // 3,
        "total_tokens": size + output,
    }


def _payload(row: dict[str, object]) -> dict[str, object]:
    payload = row["payload"]
    return payload if isinstance(payload, dict) else {}


def _line(at: datetime, kind: str, **payload: object) -> dict[str, object]:
    return {"timestamp": _iso(at), "ordinal": 1, "type": kind, "payload": payload}


def _iso(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


WRITERS: dict[str, Callable[..., Totals]] = {"claude": write_claude, "codex": write_codex}
"""By the agent whose logs they write."""
