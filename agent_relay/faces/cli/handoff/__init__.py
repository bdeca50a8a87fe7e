"""Commands about handoffs: `handoff`, `relay` and `undo-handoff`.

`_records` reads handoffs from the journals of all sessions of this user, `_view` shows one handoff in full
and a session's lineage as a tree, `_narrative` has the agent at work write a handoff document. Loaded by
name from the table of commands; the shell also calls `undo.find_predecessor`.
"""
