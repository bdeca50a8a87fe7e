"""`agent-relay metrics`: tokens, money, turns and time.

`entry.run` is what the table of commands names. It shows a cached report that still holds and loads nothing
else; otherwise `query` gathers the figures and `report` prints them. `options` understands the usual
spellings without typer, `command` all others. The modules are apart because of what each costs to load.
"""
