"""Run the commands that start work or continue it: an agent's name, `attach`, `run` and `chat`.

`agent.run_agent` opens, hands over or attaches; `attach.follow` shows a session on this terminal until it
ends or the person detaches; `relay_prompt.run_prompt_line` answers a line typed behind the relay key,
in words for that place; `run` has `run` and `chat`, which work without a screen.
`open_options.parse_words` parses the options behind an agent's name. Called by `dispatch`, the handoff
commands and the shell. `agent` and `attach` are hot: they must import nothing heavy at their start.
"""
