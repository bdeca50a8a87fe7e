"""Define the events of a session's journal as types, and their JSON.

`session` has `Event`, the union `Body` and the lines about the session and its legs; `work` has the lines
about handoffs, headless turns, contexts and budgets; `codec` (`render_event`, `parse_event`) turns them into
JSON objects and back, as it does for a race's journal. Whoever decides, writes, reads or redacts a journal
uses it: the state machine, the engine, the store, `redact`, `usage` and `watch`.
"""
