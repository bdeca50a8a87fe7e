"""Run the relay shell: one prompt, many turns, whichever agent works on them.

Public: `entry.open_shell` (`agent-relay` alone) and `entry.resume` (`agent-relay resume`), called by
`__main__` and the table of commands; no other room imports this one. `entry` is cheap to import; `_startup`
puts `_app.Shell` together and loads prompt_toolkit. `_commands` runs a typed line and completes it,
`_actions` performs the slash commands. Typed messages wait on disk (`_message_queue`); `_turns` gives them to
the agent, one after the other, and `_agent_switch` decides which agent has the next one, and frees the
session for it. `_terminal` has the terminal's modes and prints above the prompt.
"""
