"""Decide what a typed line means, and run the slash commands.

`dispatch` gives each command of the one table (`faces.cli.commands`) its action and runs a typed line
(`run_line`); `_actions` is what they do, `completion` serves Tab, `interface` is the shell as commands
see it. Called by `_app` and `_startup`.
"""
