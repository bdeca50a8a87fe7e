"""Run `agent-relay metrics`: tokens, money, turns and time.

`entry.run_metrics` is what the table of commands names. It prints a cached report if that is still valid, and
loads nothing else; otherwise `_query` gathers the figures by the options of `_options`, and `_report` prints
them. They are separate modules because of what each costs to load.
"""
