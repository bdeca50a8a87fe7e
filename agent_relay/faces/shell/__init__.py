"""Run the relay shell: one prompt, many turns, whichever agent works on them.

Public: `entry.open_shell` (`agent-relay` alone) and `entry.resume` (`agent-relay resume`), called by
`__main__` and the table of commands; no other room imports this one. `entry` is cheap to import; `_startup`
puts `_app.Shell` together and loads prompt_toolkit. `commands` has the slash commands, `turns` gives messages
to agents.
"""
