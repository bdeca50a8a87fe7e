"""Define what other processes are sent: the wire protocol, and what commands print for programs.

`wire` (`render_line`, `parse_line`) and `operations` (the one table: `OPERATIONS`, each with its fields, and
what a `Handler` and an `App` promise) are between clients and the daemon; `run_output` and `watch_output` are
the lines of `run --json`, `chat --json` and `watch --json`; `watch_events` is the union of the latter, with
its published schema, and `timeline` is a session over time, which the daemon does not load; `watch_output`
also has `LiveSession`, what the daemon alone knows of a session at work, and `Figure`, one exported metric;
`handoff_report` (`HandoffReport`) is what is reported of a handoff that is judged;
`json_text` (`parse_json`, `render_json`) is strict JSON, in one line of ASCII. Clients, the daemon, the
engine, race, the faces and the holder use it.
"""
