"""Writes a story as opencode 1.18.33 keeps it: rows of its database, or the JSON of its export."""

import json
import os
import sqlite3
from collections.abc import Iterable

from tests.support.corpus_story import Clock, Event, Names

_SCHEMA = """
CREATE TABLE session (id text PRIMARY KEY, project_id text NOT NULL, parent_id text, slug text NOT NULL,
  directory text NOT NULL, title text NOT NULL, version text NOT NULL, revert text, agent text, model text,
  time_created integer NOT NULL, time_updated integer NOT NULL, time_archived integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE part (id text PRIMARY KEY, message_id text NOT NULL, session_id text NOT NULL,
  time_created integer NOT NULL, time_updated integer NOT NULL, data text NOT NULL);
CREATE TABLE todo (session_id text NOT NULL, content text NOT NULL, status text NOT NULL,
  priority text NOT NULL, position integer NOT NULL, time_created integer NOT NULL,
  time_updated integer NOT NULL, PRIMARY KEY (session_id, position));
"""
_TOKENS = {"total": 9405, "input": 5304, "output": 5, "reasoning": 0, "cache": {"write": 0, "read": 4096}}


class OpencodeWriter:
    """A session in the making; `fork` copies its messages into a new session, as /fork does."""

    def __init__(self, folder: str, cwd: str) -> None:
        self.folder, self.cwd = folder, cwd
        self.names, self.clock = Names(17), Clock()
        self.count = 0
        self.sessions: list[tuple[str, str | None, int]] = []
        self.messages: list[tuple[str, str, int, dict[str, object]]] = []
        self.parts: list[tuple[str, str, str, int, dict[str, object]]] = []
        self.todos: list[tuple[str, str]] = []
        self.prompts: list[str] = []
        self.session = self._start(None)
        self.asked = self.answer = ""
        self.data: dict[str, object] = {}

    def write(self, events: Iterable[Event]) -> str:
        """Write the database; returns its path."""
        self._hear(events)
        os.makedirs(self.folder, exist_ok=True)
        path = os.path.join(self.folder, "opencode.db")
        base = sqlite3.connect(path)
        base.executescript(_SCHEMA)
        for number, parent, at in self.sessions:
            updated = at + (1 if number != self.session else 10**9)
            row = (
                number,
                "p1",
                parent,
                "quiet-forest",
                self.cwd,
                "A session",
                "1.18.33",
                "build",
                at,
                updated,
            )
            base.execute("INSERT INTO session VALUES (?,?,?,?,?,?,?,NULL,?,NULL,?,?,NULL)", row)
        rows = ((number, session, at, at, json.dumps(data)) for number, session, at, data in self.messages)
        base.executemany("INSERT INTO message VALUES (?,?,?,?,?)", rows)
        parts = (
            (number, message, session, at, at, json.dumps(data))
            for number, message, session, at, data in self.parts
        )
        base.executemany("INSERT INTO part VALUES (?,?,?,?,?,?)", parts)
        for place, (text, status) in enumerate(self.todos):
            base.execute(
                "INSERT INTO todo VALUES (?,?,?,?,?,?,?)", (self.session, text, status, "high", place, 1, 1)
            )
        base.commit()
        base.close()
        return path

    def export(self, events: Iterable[Event], path: str) -> str:
        """Write what `opencode export` prints; returns its path."""
        self._hear(events)
        entries = []
        for number, session, _, data in self.messages:
            own = [
                {**part, "id": name, "sessionID": session, "messageID": number}
                for name, message, _, _, part in self.parts
                if message == number
            ]
            entries.append({"info": {**data, "id": number, "sessionID": session}, "parts": own})
        started = self.sessions[0][2]
        info = {
            "id": self.session,
            "slug": "quiet-forest",
            "projectID": "p1",
            "directory": self.cwd,
            "path": "",
        }
        info |= {"title": "A session", "version": "1.18.33", "time": {"created": started, "updated": started}}
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"info": info, "messages": entries}, file, indent=2, ensure_ascii=False)
        return path

    def _hear(self, events: Iterable[Event]) -> None:
        for event in events:
            getattr(self, f"_{event.kind}")(event)
        self._finish("stop")

    def _start(self, parent: str | None) -> str:
        number = f"ses_{self._name()}"
        self.sessions.append((number, parent, self.clock.ms()))
        return number

    def _name(self) -> str:
        """Ids sort by time: a growing number, then noise."""
        self.count += 1
        return f"{self.count:012x}{self.names.hex(14)}"

    def _message(self, data: dict[str, object]) -> str:
        number, at = f"msg_{self._name()}", self.clock.ms()
        self.messages.append((number, self.session, at, {**data, "time": {"created": at}}))
        return number

    def _part(self, message: str, data: dict[str, object]) -> None:
        self.parts.append((f"prt_{self._name()}", message, self.session, self.clock.ms(), data))

    def _prompt(self, event: Event) -> None:
        self._finish("stop")
        model = {"providerID": "fakeoa", "modelID": "fake-large"}
        self.asked = self._message(
            {"role": "user", "agent": "build", "model": model, "summary": {"diffs": []}}
        )
        self.prompts.append(self.asked)
        self._part(self.asked, {"type": "text", "text": event.text})

    def _finish(self, reason: str) -> None:
        if self.answer:
            ended = next(data for number, *_, data in self.messages if number == self.answer)
            ended["finish"] = reason
            step = {"reason": reason, "type": "step-finish", "tokens": _TOKENS, "cost": 0.007}
            self._part(self.answer, step)
        self.answer = ""

    def _begin(self, **more: object) -> str:
        """The answer at hand, a new one after a finished step."""
        if not self.answer:
            whole = {"parentID": self.asked, "role": "assistant", "mode": "build", "agent": "build"}
            whole |= {"path": {"cwd": self.cwd, "root": self.cwd}, "cost": 0.007, "tokens": _TOKENS}
            self.answer = self._message({**whole, "modelID": "fake-large", "providerID": "fakeoa", **more})
            self._part(self.answer, {"snapshot": self.names.hex(40), "type": "step-start"})
        return self.answer

    def _say(self, event: Event) -> None:
        self._finish("tool-calls")
        self._part(self._begin(), {"type": "text", "text": event.text, "time": {"start": 1, "end": 2}})

    def _call(self, tool: str, given: dict[str, object], output: str, metadata: dict[str, object]) -> None:
        state = {"status": "completed", "input": given, "output": output, "metadata": metadata, "title": tool}
        part = {"type": "tool", "tool": tool, "callID": f"call_{self.names.hex(12)}", "state": state}
        self._part(self._begin(), part)
        self._finish("tool-calls")

    def _run(self, event: Event) -> None:
        output, code = event.get("output"), int(event.get("exit") or 0)
        metadata: dict[str, object] = {"output": output, "exit": code, "truncated": False}
        self._call("bash", {"command": event.text, "description": "run it"}, output, metadata)

    def _fail(self, event: Event) -> None:
        given = {"filePath": event.get("path"), "oldString": "a", "newString": "b"}
        state = {"status": "error", "input": given, "error": event.text, "time": {"start": 1, "end": 2}}
        part = {"type": "tool", "tool": "edit", "callID": f"call_{self.names.hex(12)}", "state": state}
        self._part(self._begin(), part)
        self._finish("tool-calls")

    def _read(self, event: Event) -> None:
        content = event.get("content")
        self._call(
            "read", {"filePath": event.text}, f"<content>\n{content}</content>", {"preview": content[:200]}
        )

    def _edit(self, event: Event) -> None:
        old, new = event.get("old"), event.get("new")
        lines = event.list_changed()
        added, removed = event.count_changed()
        patch = "\n".join(
            (
                f"Index: {event.text}",
                "=" * 67,
                f"--- {event.text}",
                f"+++ {event.text}",
                "@@ -1,1 +1,1 @@",
                *lines,
            )
        )
        counts = {"additions": added, "deletions": removed}
        metadata: dict[str, object] = {"diagnostics": {}, "diff": f"{patch}\n"}
        metadata["filediff"] = {"file": event.text, "patch": f"{patch}\n", **counts}
        given: dict[str, object] = {"filePath": event.text, "oldString": old, "newString": new}
        self._call("edit", given, "Edit applied successfully.", metadata)

    def _create(self, event: Event) -> None:
        given: dict[str, object] = {"filePath": event.text, "content": event.get("content")}
        self._call("write", given, "Wrote file successfully.", {"filepath": event.text, "exists": False})

    def _plan(self, event: Event) -> None:
        self.todos = [(text, status) for text, status in event.steps]
        todos = [{"content": text, "status": status, "priority": "high"} for text, status in self.todos]
        self._call("todowrite", {"todos": todos}, json.dumps(todos, indent=2), {"todos": todos})

    def _subagent(self, event: Event) -> None:
        """A subagent's talk is a session of its own below this one."""
        parent, asked, answer = self.session, self.asked, self.answer
        self.session, self.answer = self._start(parent), ""
        self._prompt(Event("prompt", event.text))
        self._say(Event("say", event.get("says")))
        self._finish("stop")
        self.prompts.pop()
        child, self.session, self.asked, self.answer = self.session, parent, asked, answer
        given = {"description": event.text, "prompt": event.text, "subagent_type": "explore"}
        state: dict[str, object] = {"status": "running", "input": given, "metadata": {"sessionId": child}}
        if event.get("finished"):
            state |= {"status": "completed", "output": event.get("says"), "title": event.text}
        call = {"type": "tool", "tool": "task", "callID": f"call_{self.names.hex(12)}", "state": state}
        self._part(self._begin(), call)

    def _compact(self, event: Event) -> None:
        self._finish("stop")
        model = {"providerID": "fakeoa", "modelID": "fake-large"}
        self.asked = self._message(
            {"role": "user", "agent": "build", "model": model, "summary": {"diffs": []}}
        )
        self._part(self.asked, {"type": "compaction", "auto": True})
        answer = self._begin(mode="compaction", agent="compaction", summary=True)
        self._part(answer, {"type": "text", "text": event.text, "time": {"start": 1, "end": 2}})
        self._finish("stop")

    def _fork(self, _: Event) -> None:
        self._finish("stop")
        old, self.session = self.session, self._start(None)
        names: dict[str, str] = {}
        for number, session, at, data in list(self.messages):
            if session == old:
                names[number] = f"msg_{self._name()}"
                self.messages.append((names[number], self.session, at, dict(data)))
        for _, message, session, at, data in list(self.parts):
            if session == old:
                self.parts.append((f"prt_{self._name()}", names[message], self.session, at, data))

    def _rewind(self, event: Event) -> None:
        """What the user took back is deleted when they go on."""
        self._finish("stop")
        first = self.prompts[-int(event.text)]
        del self.prompts[-int(event.text) :]
        self.messages = [one for one in self.messages if one[1] != self.session or one[0] < first]
        kept = {number for number, *_ in self.messages}
        self.parts = [one for one in self.parts if one[1] in kept]

    def _cut(self, _: Event) -> None:
        self._finish("tool-calls")

    def _interrupt(self, _: Event) -> None:
        self._break_off({"name": "MessageAbortedError", "data": {"message": "The operation was aborted."}})

    def _limit(self, event: Event) -> None:
        data = {"message": event.text, "statusCode": 429, "isRetryable": True}
        self._break_off({"name": "APIError", "data": data})

    def _break_off(self, error: dict[str, object]) -> None:
        """An answer that holds an error and nothing else."""
        self._finish("tool-calls")
        self._begin()
        self.messages[-1][3]["error"] = error
        self.parts.pop()
        self.answer = ""
