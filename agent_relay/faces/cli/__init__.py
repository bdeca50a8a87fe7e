"""Run the command line: one function per command, found by its first word and loaded only then.

`dispatch.run` looks the first word up in `commands.COMMANDS`, imports the module named there and calls its
function with the words; errors become one sentence, a hint and an exit code. `typer_runner.run_functions`
parses the words by typer, for commands whose start-up time does not matter; `options` parses those of the
others. There is one room per subject: `start`, `session`, `roster`, `handoff`, `packet`, `race`, `metrics`,
`installation`; `demo` and `replay` stand alone. Called by `__main__`; the shell, `faces.watch` and
`faces.export` use `commands`, `dispatch`, `extras`, `options`, `session.lookup` and parts of `start`.
"""
