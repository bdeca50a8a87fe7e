"""Writes a story as Gemini CLI 0.61.0 writes its session files."""

import json
import os
from collections.abc import Iterable

from tests.support.corpus_story import Clock, Event, Names

_CONTEXT = (
    "<session_context>\nThis is the Gemini CLI. We are setting up the context for our chat.\nMy"
    " operating system is: "
    "linux\n- **Workspace Directories:**\n  - {cwd}\n- **Directory Structure:**\n\n{cwd}/\n</session_context>"
)


class GeminiWriter:
    """A session file in the making; `fork` resumes it, which writes its messages anew under other ids."""

    def __init__(self, folder: str, cwd: str) -> None:
        self.folder, self.cwd = folder, cwd
        self.names, self.clock = Names(13), Clock()
        self.session = self.names.uuid()
        self.lines: list[dict[str, object]] = []
        self.answer: dict[str, object] | None = None
        self.prompts: list[object] = []
        self.path = os.path.join(folder, "chats", f"session-2026-11-20T08-00-{self.session[:8]}.jsonl")
        at = self.clock.iso()
        header = {"sessionId": self.session, "projectHash": self.names.hex(64), "startTime": at}
        self.lines.append({**header, "lastUpdated": at, "kind": "main"})
        self._rewrite([self._context()])

    def write(self, events: Iterable[Event]) -> str:
        """Write the file; returns its path."""
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        with open(os.path.join(self.folder, ".project_root"), "w", encoding="utf-8") as file:
            file.write(self.cwd)
        for event in events:
            getattr(self, f"_{event.kind}")(event)
        with open(self.path, "w", encoding="utf-8") as file:
            file.writelines(
                json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in self.lines
            )
        return self.path

    def _context(self) -> dict[str, object]:
        text = _CONTEXT.format(cwd=self.cwd)
        return {
            "id": self.names.hex(32),
            "timestamp": self.clock.iso(),
            "type": "user",
            "content": [{"text": text}],
        }

    def _rewrite(self, messages: list[dict[str, object]]) -> None:
        self.lines.append({"$set": {"messages": messages, "lastUpdated": self.clock.iso()}})

    def _put(self, kind: str, content: object, **more: object) -> dict[str, object]:
        record = {
            "id": self.names.uuid(),
            "timestamp": self.clock.iso(),
            "type": kind,
            "content": content,
            **more,
        }
        self.lines.append(record)
        self.lines.append({"$set": {"lastUpdated": self.clock.iso()}})
        return record

    def _prompt(self, event: Event) -> None:
        self.answer = None
        self.prompts.append(self._put("user", [{"text": event.text}])["id"])

    def _say(self, event: Event) -> None:
        tokens = {"input": 8400, "output": 2, "cached": 4096, "thoughts": 57, "tool": 0, "total": 8459}
        self.answer = self._put("gemini", event.text, thoughts=[], tokens=tokens, model="gemini-2.5-pro")

    def _call(
        self,
        name: str,
        args: dict[str, object],
        response: dict[str, object],
        display: object,
        status: str = "success",
    ) -> None:
        """A record is written again with the calls it made; their results follow as the user's."""
        if self.answer is None:
            self._say(Event("say", ""))
        assert self.answer is not None
        number = f"{name}__{self.names.hex(8)}"
        result = [{"functionResponse": {"id": number, "name": name, "response": response}}]
        call = {"id": number, "name": name, "args": args, "result": result, "status": status}
        call |= {"timestamp": self.clock.iso(), "resultDisplay": display, "displayName": name}
        self.lines.append({**self.answer, "toolCalls": [call]})
        self._put("user", [{"functionResponse": {"id": number, "name": name, "response": response}}])
        self.answer = None

    def _run(self, event: Event) -> None:
        output, code = event.get("output").rstrip("\n"), int(event.get("exit") or 0)
        trailer = f"\nExit Code: {code}" if code else ""
        said = f"Output: {output or '(empty)'}{trailer}\nProcess Group PGID: 32734"
        text = f"<untrusted_context>\n{said}\n</untrusted_context>"
        args: dict[str, object] = {"command": event.text, "description": "run it"}
        self._call("run_shell_command", args, {"output": text}, [[{"text": output[:80], "bold": False}]])

    def _fail(self, event: Event) -> None:
        args: dict[str, object] = {"file_path": event.get("path"), "old_string": "a", "new_string": "b"}
        self._call("replace", args, {"error": event.text}, event.text, status="error")

    def _read(self, event: Event) -> None:
        self._call("read_file", {"file_path": event.text}, {"output": event.get("content")}, "")

    def _edit(self, event: Event) -> None:
        old, new = event.get("old"), event.get("new")
        args: dict[str, object] = {
            "file_path": event.text,
            "instruction": "",
            "old_string": old,
            "new_string": new,
        }
        lines = "\n".join(event.list_changed())
        diff = f"Index: x\n--- x\tCurrent\n+++ x\tProposed\n@@ -1,1 +1,1 @@\n{lines}\n"
        added, removed = event.count_changed()
        stat = {
            "model_added_lines": added,
            "model_removed_lines": removed,
            "user_added_lines": 0,
            "user_removed_lines": 0,
        }
        display = {"fileDiff": diff, "filePath": event.text, "diffStat": stat, "isNewFile": False}
        said = f"Successfully modified file: {event.text} (1 replacements)."
        self._call("replace", args, {"output": said}, display)

    def _create(self, event: Event) -> None:
        args: dict[str, object] = {"file_path": event.text, "content": event.get("content")}
        said = f"Successfully created and wrote to new file: {event.text}."
        self._call("write_file", args, {"output": said}, {"filePath": event.text, "isNewFile": True})

    def _plan(self, event: Event) -> None:
        steps = [{"description": text, "status": status} for text, status in event.steps]
        said = "Successfully updated the todo list."
        self._call("write_todos", {"todos": steps}, {"output": said}, {"todos": steps})

    def _subagent(self, event: Event) -> None:
        """A subagent is a tool of its own name; its talk is only in the result."""
        result: dict[str, object] = {"output": f"Subagent finished.\n\nResult:\n{event.get('says')}"}
        self._call("codebase_investigator", {"objective": event.text}, result, event.get("says"))

    def _compact(self, event: Event) -> None:
        at = self.clock.iso()
        self.lines.append({"$set": {"sessionId": self.session}})
        asked = {"id": self.names.uuid(), "timestamp": at, "type": "user", "content": [{"text": event.text}]}
        got = [{"text": "Got it. Thanks for the additional context!"}]
        answered = {"id": self.names.uuid(), "timestamp": at, "type": "gemini", "content": got}
        self._rewrite([self._context(), asked, answered])
        self._put("info", "")

    def _fork(self, _: Event) -> None:
        repeated = [
            {**line, "id": self.names.uuid()}
            for line in self.lines
            if line.get("type") in ("user", "gemini")
            and "functionResponse" not in json.dumps(line["content"])
        ]
        self.lines.append({"$set": {"sessionId": self.session}})
        self._rewrite([self._context(), *repeated])

    def _interrupt(self, _: Event) -> None:
        self._put("info", "Request cancelled.")

    def _rewind(self, event: Event) -> None:
        back = int(event.text)
        self.lines.append({"$rewindTo": self.prompts[-back]})
        del self.prompts[-back:]

    def _cut(self, _: Event) -> None:
        """Nothing: no record says that a turn ended."""

    def _limit(self, event: Event) -> None:
        self._put("error", event.text)
