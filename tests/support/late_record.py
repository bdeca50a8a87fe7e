"""The demo agent with hooks, and with a transcript that lags behind them; run as a program.

    late_record.py FOLDER LAG_S [options of the demo agent]

FOLDER is the demo agent's. What it is asked and that it met a limit it tells in `$LATE_RECORD_HOOKS` at once.
From a prompt that holds `out` on, its transcript gets its rows LAG_S seconds after the limit, or `never`.
"""

import json
import os
import sys
import threading
from datetime import UTC, datetime

FOLDER, LAG = sys.argv[1:3]
sys.argv[1:3] = []
sys.path.insert(0, FOLDER)

import agent  # type: ignore[import-not-found]  # noqa: E402 - the demo agent, from the folder just named
import stage  # type: ignore[import-not-found]  # noqa: E402


class LateTranscript(stage.Transcript):  # type: ignore[misc]
    """A transcript whose last rows are held back."""

    def __init__(self, path: str, *, is_told: bool = False) -> None:
        super().__init__(path, is_told=is_told)
        self._path_of_rows = path
        self._native_id = os.path.basename(path).removesuffix(".jsonl")
        self._late: list[str] = []
        self._is_late = False

    def write(self, kind: str, **values: object) -> None:
        """One more row, or one that waits; prompts and limits are told by a hook before it."""
        if kind == "prompt":
            self._is_late = self._is_late or "out" in str(values["text"])
            tell_hook("UserPromptSubmit", self._native_id, prompt=values["text"])
        if kind == "limit":
            tell_hook("StopFailure", self._native_id, words=values["text"])
        if not self._is_late:
            super().write(kind, **values)
            return
        row = {"type": kind, "at": datetime.now(UTC).isoformat(), **values}
        self._late.append(json.dumps(row) + "\n")
        if kind == "limit" and LAG != "never":
            threading.Timer(float(LAG), self.flush).start()

    def flush(self) -> None:
        """What waited is written."""
        with open(self._path_of_rows, "a", encoding="utf-8") as file:
            file.writelines(self._late)
        self._late.clear()


def tell_hook(event: str, native_id: str, **more: object) -> None:
    """One line as relay's own hook program keeps it."""
    payload = {"hook_event_name": event, "session_id": native_id, **more}
    line = {"at": datetime.now(UTC).isoformat(), "payload": payload}
    with open(os.environ["LATE_RECORD_HOOKS"], "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    agent.Transcript = LateTranscript
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    status = agent.main()
    # As a killed one does: what is held back by then is lost, timers and all.
    os._exit(status)
