"""The relay shell: one prompt, many turns, whichever agent has them.

Public: `entry.open_shell` (`agent-relay` alone) and `entry.resume` (`agent-relay resume`), called by
`__main__` and the table of commands; no other room imports this one. `entry` is cheap; `startup` puts
`app.Shell` together and loads prompt_toolkit. `commands` is everything behind the slash, `turns` gives
messages to agents.
"""
