"""`agent-relay race`: several agents at one task, each in its own worktree.

`command` starts races and looks after them through the daemon, `progress` follows one until it comes to
rest, `summary` shows one as a table and sentences. Loaded by name from the table of commands.
"""
