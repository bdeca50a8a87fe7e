"""What a typed line means, and the slash commands.

One table (`registry`), from which help, completion and the page of docs are made. `dispatch.run_line` runs a
line, `completion` serves Tab, `interface` is the shell as commands see it. Called by `_app` and `_startup`.
"""
