"""Writes a story as Claude Code 2.1.197 writes its session files."""

import json
import os
from collections.abc import Iterable

from tests.support.corpus_story import Clock, Event, Names

_USAGE = {
    "input_tokens": 1200,
    "cache_creation_input_tokens": 300,
    "cache_read_input_tokens": 15000,
    "output_tokens": 42,
    "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0},
    "service_tier": "standard",
}
_CONTINUED = (
    "This session is being continued from a previous conversation that ran out of context. The summary below "
    "covers the earlier portion of the conversation.\n\nSummary:\n{summary}\n\nIf you need specific"
    " details from "
    "before compaction (like exact code snippets, error messages, or content you generated), read the full "
    "transcript at: {path}\nContinue the conversation from where it left off."
)


class ClaudeWriter:
    """A session file in the making; a `fork` copies what there is into a new session."""

    def __init__(self, folder: str, cwd: str) -> None:
        self.folder, self.cwd = folder, cwd
        self.names, self.clock = Names(7), Clock()
        self.session = self.names.uuid()
        self.rows: list[dict[str, object]] = []
        self.parent: str | None = None
        self.prompt_id = ""
        self.tasks: dict[str, str] = {}
        self.said: dict[str, object] | None = None

    @property
    def path(self) -> str:
        """The session's file."""
        return os.path.join(self.folder, f"{self.session}.jsonl")

    def write(self, events: Iterable[Event]) -> str:
        """Write the file; returns its path."""
        os.makedirs(self.folder, exist_ok=True)
        for event in events:
            getattr(self, f"_{event.kind}")(event)
        self._end_turn()
        with open(self.path, "w", encoding="utf-8") as file:
            file.writelines(
                json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in self.rows
            )
        return self.path

    def _row(self, kind: str, **fields: object) -> dict[str, object]:
        uuid = self.names.uuid()
        row = {"parentUuid": self.parent, "isSidechain": False, "type": kind, **fields}
        row |= {"uuid": uuid, "timestamp": self.clock.iso(), "userType": "external", "entrypoint": "cli"}
        row |= {"cwd": self.cwd, "sessionId": self.session, "version": "2.1.197", "gitBranch": "main"}
        self.rows.append(row)
        self.parent = uuid
        return row

    def _prompt(self, event: Event) -> None:
        self._end_turn()
        self.prompt_id = self.names.uuid()
        message = {"role": "user", "content": event.text}
        human = {"permissionMode": "acceptEdits", "origin": {"kind": "human"}, "promptSource": "typed"}
        row = self._row("user", promptId=self.prompt_id, message=message, **human)
        snapshot = {"messageId": row["uuid"], "trackedFileBackups": {}, "timestamp": row["timestamp"]}
        entry = {"type": "file-history-snapshot", "messageId": row["uuid"], "snapshot": snapshot}
        self.rows.append({**entry, "isSnapshotUpdate": False})

    def _answer(self, part: dict[str, object], stop_reason: str) -> dict[str, object]:
        message: dict[str, object] = {
            "id": f"msg_01Fake{self.names.hex(16)}",
            "type": "message",
            "role": "assistant",
            "model": "claude-opus-4-8",
            "content": [part],
            "stop_reason": stop_reason,
            "stop_sequence": None,
            "usage": _USAGE,
        }
        self._row("assistant", message=message, requestId=f"req_011Fake{self.names.hex(16)}")
        return message

    def _say(self, event: Event) -> None:
        self.said = self._answer({"type": "text", "text": event.text}, "tool_use")

    def _end_turn(self) -> None:
        """The last thing said since a prompt ended its turn."""
        if self.said is not None:
            self.said["stop_reason"] = "end_turn"
            more = {"subtype": "turn_duration", "durationMs": 6096, "messageCount": 27, "isMeta": False}
            self._row("system", **more)
        self.said = None

    def _call(
        self, name: str, given: dict[str, object], text: str, result: object, *, failed: bool | None = None
    ) -> None:
        number = f"toolu_01Fake{self.names.hex(14)}"
        self._answer({"type": "tool_use", "id": number, "name": name, "input": given}, "tool_use")
        caller, self.said = self.parent, None
        part: dict[str, object] = {"tool_use_id": number, "type": "tool_result", "content": text}
        if failed is not None:
            part["is_error"] = failed
        message = {"role": "user", "content": [part]}
        more = {"toolUseResult": result, "sourceToolAssistantUUID": caller}
        self._row("user", promptId=self.prompt_id, message=message, **more)

    def _run(self, event: Event) -> None:
        output, code = event.get("output").rstrip("\n"), int(event.get("exit") or 0)
        given: dict[str, object] = {"command": event.text, "description": "Run it"}
        if code:
            text = f"Exit code {code}\n{output}"
            self._call("Bash", given, text, f"Error: {text}", failed=True)
            return
        result = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
        self._call("Bash", given, output, result, failed=False)

    def _fail(self, event: Event) -> None:
        given: dict[str, object] = {"file_path": event.get("path"), "old_string": "a", "new_string": "b"}
        text = f"<tool_use_error>{event.text}</tool_use_error>"
        self._call("Edit", given, text, f"Error: {event.text}", failed=True)

    def _read(self, event: Event) -> None:
        content = event.get("content")
        file = {"filePath": event.text, "content": content, "numLines": 20, "startLine": 1, "totalLines": 20}
        self._call("Read", {"file_path": event.text}, content, {"type": "text", "file": file})

    def _edit(self, event: Event) -> None:
        old, new = event.get("old"), event.get("new")
        hunk = {"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": [f"-{old}", f"+{new}"]}
        result = {"filePath": event.text, "oldString": old, "newString": new, "structuredPatch": [hunk]}
        given: dict[str, object] = {"file_path": event.text, "old_string": old, "new_string": new}
        self._call("Edit", given, f"The file {event.text} has been updated successfully.", result)

    def _create(self, event: Event) -> None:
        content = event.get("content")
        result = {"type": "create", "filePath": event.text, "content": content, "structuredPatch": []}
        given: dict[str, object] = {"file_path": event.text, "content": content}
        self._call("Write", given, f"File created successfully at: {event.text}", result)

    def _plan(self, event: Event) -> None:
        """Tasks are made and moved one by one."""
        for text, status in event.steps:
            if text not in self.tasks:
                number = str(len(self.tasks) + 1)
                self.tasks[text] = number
                result: dict[str, object] = {"task": {"id": number, "subject": text}}
                given: dict[str, object] = {"subject": text, "description": text, "activeForm": text}
                self._call("TaskCreate", given, f"Task #{number} created successfully: {text}", result)
            moved: dict[str, object] = {"taskId": self.tasks[text], "status": status}
            result = {"success": True, "taskId": self.tasks[text], "updatedFields": ["status"]}
            self._call("TaskUpdate", moved, f"Updated task #{self.tasks[text]} status", result)

    def _subagent(self, event: Event) -> None:
        number = self.names.hex(16)
        given: dict[str, object] = {
            "description": event.text,
            "prompt": event.text,
            "subagent_type": "Explore",
        }
        given["run_in_background"] = True
        result = {"isAsync": True, "status": "async_launched", "agentId": number, "description": event.text}
        self._call("Task", given, "Async agent launched successfully.", result)
        parent, self.parent = self.parent, None
        for kind, words in (("user", event.text), ("assistant", event.get("says"))):
            content = [{"type": "text", "text": words}]
            self._row(kind, message={"role": kind, "content": content}, agentId=number)["isSidechain"] = True
        self.parent = parent

    def _compact(self, event: Event) -> None:
        self._end_turn()
        before, self.parent = self.parent, None
        data = {"trigger": "auto", "preTokens": 165420, "durationMs": 141, "postTokens": 830}
        more = {"subtype": "compact_boundary", "content": "Conversation compacted", "isMeta": False}
        self._row("system", logicalParentUuid=before, level="info", compactMetadata=data, **more)
        words = _CONTINUED.format(summary=event.text, path=self.path)
        shown = {"isVisibleInTranscriptOnly": True, "isCompactSummary": True}
        self._row("user", message={"role": "user", "content": words}, **shown)

    def _fork(self, _: Event) -> None:
        """A forked session repeats every row under its own id and leaves the old file as it was."""
        self._end_turn()
        with open(self.path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in self.rows)
        self.session = self.names.uuid()
        self.rows = [{**row, "sessionId": self.session} if "sessionId" in row else row for row in self.rows]

    def _limit(self, event: Event) -> None:
        part = {"type": "text", "text": event.text}
        message = self._answer(part, "stop_sequence")
        message["model"] = "<synthetic>"
        self.rows[-1] |= {"error": "rate_limit", "isApiErrorMessage": True, "apiErrorStatus": 429}
        self.said = None
