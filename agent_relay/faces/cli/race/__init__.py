"""Run `agent-relay race`: several agents at one task, each in its own worktree.

`command` starts and manages races through the daemon; `_view` follows one until it is over and shows one as a
table and sentences. Loaded by name from the table of commands.
"""
