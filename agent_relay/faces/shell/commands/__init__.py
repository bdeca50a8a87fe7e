"""Decide what a typed line means, and run the slash commands.

One table (`registry`), from which help, completion and the page of docs are made; `_actions` is what its
commands do. `dispatch.run_line` runs a line, `completion` serves Tab, `interface` is the shell as commands
see it. Called by `_app` and `_startup`.
"""
