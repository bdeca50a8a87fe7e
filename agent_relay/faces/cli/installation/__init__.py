"""Run the commands about relay on this machine: `init`, `doctor` and `daemon`.

Loaded by name from the table of commands; nothing else imports them. `_findings` is a part of `doctor`: it
shows findings as they come and asks git and the agents for their versions.
"""
