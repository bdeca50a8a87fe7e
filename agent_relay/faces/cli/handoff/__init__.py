"""Run the commands about handoffs: `handoff`, `relay` and `undo-handoff`.

`command` is `handoff`: records of handoffs, what can be done to one, and the document an agent at work writes
for its successor; `_records` reads handoffs from the journals of all sessions of this user and shows one in
full or a session's as a tree; `relay` has the other two. Loaded by name from the table of commands; the shell
also calls `relay.find_predecessor`.
"""
