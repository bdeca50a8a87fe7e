"""Run `agent-relay metrics`: tokens, money, turns and time.

`command.run_metrics` is what the table of commands names. `_options` parses the words, `_report` gathers the
figures and prints them; it is loaded only once the words are known to be right.
"""
