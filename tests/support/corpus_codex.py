"""Writes a story as Codex 0.169.0 writes its rollouts: items and the wire records that repeat them."""

import json
import os
from collections.abc import Iterable

from tests.support.corpus_story import Clock, Event, Names

_WINDOW = 258400
_RESUMED = (
    "Another language model started to solve this problem and produced a summary of its thinking"
    " process. You also "
    "have access to the state of the tools that were used by that language model. Use this to build"
    " on the work "
    "that has already been done and avoid duplicating work. Here is the summary produced by the"
    " other language "
    "model, use the information in this summary to assist with your own analysis:\n"
)
_ABORTED = (
    "<turn_aborted>\nThe user interrupted the previous turn on purpose. Any running unified exec processes"
    " may still be running in the background. If any tools/commands were aborted, they may have partially"
    " executed.\n</turn_aborted>"
)


class CodexWriter:
    """A rollout in the making; after a `fork` a second one goes on where the first stopped."""

    def __init__(self, folder: str, cwd: str) -> None:
        self.folder, self.cwd = folder, cwd
        self.names, self.clock = Names(11), Clock()
        self.lines: list[str] = []
        self.ordinal = 0
        self.turn = ""
        self.spent = 0
        self.thread = self.names.uuid()
        self.path = ""
        self._open()

    def write(self, events: Iterable[Event]) -> str:
        """Write the file; returns its path."""
        os.makedirs(self.folder, exist_ok=True)
        for event in events:
            getattr(self, f"_{event.kind}")(event)
        self._end_turn()
        self._flush()
        return self.path

    def _flush(self) -> None:
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("".join(self.lines))

    def _open(self, **more: object) -> None:
        stamp = self.clock.iso()
        self.path = os.path.join(self.folder, f"rollout-{stamp[:19].replace(':', '-')}-{self.thread}.jsonl")
        self._line(
            "session_meta",
            {
                "session_id": self.thread,
                "id": self.thread,
                **more,
                "timestamp": stamp,
                "cwd": self.cwd,
                "originator": "codex-tui",
                "cli_version": "0.169.0",
                "source": "cli",
                "thread_source": "user",
                "model_provider": "openai",
                "base_instructions": {"text": "You are Codex, a coding agent. Never ask twice. " * 40},
                "git": {"branch": "main"},
            },
        )

    def _line(self, kind: str, payload: dict[str, object], **more: object) -> None:
        record = {
            "timestamp": self.clock.iso(),
            "ordinal": self.ordinal,
            "type": kind,
            "payload": payload,
            **more,
        }
        self.lines.append(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")
        self.ordinal += 1

    def _event(self, kind: str, /, **payload: object) -> None:
        self._line("event_msg", {"type": kind, **payload})

    def _item(self, kind: str, **item: object) -> None:
        at = self.clock.ms()
        whole = {"type": kind, "id": f"item_{self.names.hex(12)}", **item}
        ids = {"thread_id": self.thread, "turn_id": self.turn}
        self._event("item_completed", **ids, item=whole, started_at_ms=at, completed_at_ms=at)

    def _wire(self, kind: str, **payload: object) -> None:
        self._line("response_item", {"type": kind, "id": f"x_{self.names.hex(12)}", **payload})

    def _wire_message(self, role: str, text: str) -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        self._wire("message", role=role, content=[{"type": kind, "text": text}])

    def _prompt(self, event: Event) -> None:
        self._end_turn()
        self.turn = self.names.uuid()
        started = {"turn_id": self.turn, "started_at": self.clock.ms() // 1000}
        self._event("task_started", **started, model_context_window=_WINDOW)
        self._wire_message("user", f"<environment_context>\n  <cwd>{self.cwd}</cwd>\n</environment_context>")
        self._line(
            "world_state", {"full": True, "state": {"model": "gpt-5.5", "host_skills": "Always test. " * 80}}
        )
        context = {"turn_id": self.turn, "cwd": self.cwd, "approval_policy": "never", "model": "gpt-5.5"}
        self._line("turn_context", context)
        self._wire_message("user", event.text)
        self._item("UserMessage", content=[{"type": "text", "text": event.text, "text_elements": []}])

    def _say(self, event: Event) -> None:
        self._item("AgentMessage", content=[{"type": "Text", "text": event.text}])
        self._wire_message("assistant", event.text)
        self.spent += 9120
        usage = {"input_tokens": 9000, "cached_input_tokens": 7000, "cache_write_input_tokens": 0}
        usage |= {"output_tokens": 120, "reasoning_output_tokens": 64, "total_tokens": 9120}
        ids = {"thread_id": self.thread, "turn_id": self.turn, "response_id": f"resp_{self.names.hex(16)}"}
        self._line("token_usage_record", {**ids, "usage": usage})
        info = {"total_token_usage": {**usage, "total_tokens": self.spent}, "last_token_usage": usage}
        limits = {"primary": {"used_percent": 41.0, "window_minutes": 300, "resets_at": 1795178450}}
        self._event("token_count", info={**info, "model_context_window": _WINDOW}, rate_limits=limits)

    def _end_turn(self, error: dict[str, object] | None = None) -> None:
        if self.turn:
            more = {"last_agent_message": None, **({"error": error} if error else {})}
            self._event("task_complete", turn_id=self.turn, **more, duration_ms=297)
        self.turn = ""

    def _call(self, name: str, arguments: dict[str, object]) -> str:
        number = f"call_{self.names.hex(16)}"
        self._wire("function_call", name=name, arguments=json.dumps(arguments), call_id=number)
        return number

    def _execute(self, command: str, output: str, code: int, parsed: dict[str, object]) -> None:
        number = self._call("exec_command", {"cmd": command})
        self._item(
            "CommandExecution",
            process_id="51814",
            command=["/bin/bash", "-lc", command],
            cwd=f"file://{self.cwd}",
            parsed_cmd=[parsed],
            source="unified_exec_startup",
            status="failed" if code else "completed",
            aggregated_output=output,
            exit_code=code,
        )
        said = (
            f"Chunk ID: f5cb0b\nWall time: 0.0000 seconds\nProcess exited with code {code}\nOutput:\n{output}"
        )
        self._wire("function_call_output", call_id=number, output=said)

    def _run(self, event: Event) -> None:
        parsed: dict[str, object] = {"type": "unknown", "cmd": event.text}
        self._execute(event.text, event.get("output"), int(event.get("exit") or 0), parsed)

    def _read(self, event: Event) -> None:
        name = os.path.basename(event.text)
        parsed: dict[str, object] = {
            "type": "read",
            "cmd": f"cat {event.text}",
            "name": name,
            "path": event.text,
        }
        self._execute(f"cat {event.text}", event.get("content"), 0, parsed)

    def _fail(self, event: Event) -> None:
        self._item("FileChange", changes={}, status="failed", stdout="", stderr=event.text)

    def _change(self, path: str, change: dict[str, object], patch: str) -> None:
        said = f"Success. Updated the following files:\nM {path}\n"
        number = f"call_{self.names.hex(16)}"
        whole = f"*** Begin Patch\n{patch}\n*** End Patch\n"
        self._wire("custom_tool_call", status="completed", call_id=number, name="apply_patch", input=whole)
        self._item("FileChange", changes={path: change}, status="completed", stdout=said, stderr="")
        output = f"Exit code: 0\nWall time: 0 seconds\nOutput:\n{said}"
        self._wire("custom_tool_call_output", call_id=number, output=output)

    def _edit(self, event: Event) -> None:
        lines = "\n".join(event.list_changed())
        change: dict[str, object] = {"type": "update", "unified_diff": f"@@ -1,1 +1,1 @@\n{lines}\n"}
        change["move_path"] = None
        self._change(event.text, change, f"*** Update File: {event.text}\n@@\n{lines}")

    def _create(self, event: Event) -> None:
        content = event.get("content")
        lines = "\n".join(f"+{line}" for line in content.split("\n"))
        self._change(event.text, {"type": "add", "content": content}, f"*** Add File: {event.text}\n{lines}")

    def _plan(self, event: Event) -> None:
        steps = [{"step": text, "status": status} for text, status in event.steps]
        number = self._call("update_plan", {"explanation": "Plan", "plan": steps})
        self._wire("function_call_output", call_id=number, output="Plan updated")

    def _subagent(self, event: Event) -> None:
        """A subagent is a thread with a file of its own, whose source names its parent."""
        other = CodexWriter(os.path.join(self.folder, "subagents"), self.cwd)
        other.names = Names(self.ordinal)
        other.thread, other.lines = other.names.uuid(), []
        other._open(source={"subagent": {"thread_spawn": {"parent_thread_id": self.thread, "depth": 1}}})
        record = json.loads(other.lines[0])
        record["payload"]["source"] = {
            "subagent": {"thread_spawn": {"parent_thread_id": self.thread, "depth": 1}}
        }
        other.lines[0] = json.dumps(record) + "\n"
        other.write([Event("prompt", event.text), Event("say", event.get("says"))])
        number = self._call("spawn_agent", {"message": event.text})
        self._wire("function_call_output", call_id=number, output=json.dumps({"agent_id": other.thread}))
        if event.get("finished"):
            report = {"status": {other.thread: {"completed": event.get("says")}}}
            number = self._call("wait", {"ids": [other.thread]})
            self._wire("function_call_output", call_id=number, output=json.dumps(report))

    def _compact(self, event: Event) -> None:
        self._end_turn()
        self.turn = self.names.uuid()
        self._event("task_started", turn_id=self.turn, model_context_window=_WINDOW)
        self._wire("message", role="assistant", content=[{"type": "output_text", "text": event.text}])
        self._line("compacted", {"message": _RESUMED + event.text, "replacement_history": []})
        self._item("ContextCompaction")
        self._end_turn()

    def _fork(self, _: Event) -> None:
        self._end_turn()
        self._flush()
        parent, self.thread, self.lines = self.thread, self.names.uuid(), []
        self._open(forked_from_id=parent, forked_from_ordinal_exclusive=self.ordinal)

    def _interrupt(self, _: Event) -> None:
        self._wire_message("user", _ABORTED)
        self._event("turn_aborted", turn_id=self.turn, reason="interrupted")
        self.turn = ""

    def _rewind(self, event: Event) -> None:
        self._end_turn()
        self._event("thread_rolled_back", num_turns=int(event.text))

    def _cut(self, _: Event) -> None:
        self.turn = ""

    def _limit(self, event: Event) -> None:
        self._event(
            "token_count", info=None, rate_limits={"primary": {"used_percent": 100.0, "window_minutes": 300}}
        )
        self._end_turn({"message": event.text, "codex_error_info": "usage_limit_exceeded"})


class CodexWireWriter(CodexWriter):
    """A rollout as older versions leave it: no items, only what went over the wire and what was shown."""

    def _item(self, kind: str, **item: object) -> None:
        """Nothing: these versions know no items."""

    def _prompt(self, event: Event) -> None:
        super()._prompt(event)
        self._event("user_message", message=event.text, kind="plain")

    def _say(self, event: Event) -> None:
        super()._say(event)
        self._event("agent_message", message=event.text)

    def _compact(self, event: Event) -> None:
        self._end_turn()
        self._line("compacted", {"message": _RESUMED + event.text})
