"""Run the commands about agents: `agents`, `adapters`, `order`, `model` and `limits`.

They show which agents are known, installed, signed in and resting, and write the user's choices into the
configuration: `limits` is that command, `agents` has the other four. Loaded by name from the table of
commands; `agents.build_view` is also used by `agent-relay doctor` and the shell.
"""
