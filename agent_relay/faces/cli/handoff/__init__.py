"""Run the commands about handoffs: `handoff`, `relay` and `undo-handoff`.

`command` has them all: records of handoffs, what can be done to one, the document an agent at work writes for
its successor, a handoff now and the way back. `_records` reads handoffs from the journals of all sessions of
this user and shows one in full or a session's as a tree. Loaded by name from the table of commands; the shell
also calls `command.find_predecessor`.
"""
