"""Run the command line: one function per command, found by its first word and loaded only then.

`dispatch.run` looks the first word up in `commands.COMMANDS`, imports the module named there and calls its
function with the words; errors become one sentence, a hint and an exit code. `typer_runner.run_functions`
parses the words by typer, for commands whose start-up time does not matter; `options` parses those of the
others. `session` has the commands about sessions, their handoffs and packets; those about the user's machine,
about races, the demo and the detector's recordings stand beside it, a module each. Called by `__main__`; the
shell, `faces.watch` and `faces.export` use `commands`, `command_help`, `dispatch`, `options`, `agents` and
parts of `session`.
"""
