"""The command line: one module per command, found by its first word and loaded only then.

`dispatch.run` looks the first word up in `commands.COMMANDS`, imports the module named there and calls its
`run(words)`; errors become one sentence, a hint and an exit code. `typer_runner.run_one` and `run_group` run
functions through typer, for commands whose start-up time does not matter. There is one package per subject:
`start`, `session`, `roster`, `handoff`, `packet`, `race`, `metrics`, `installation`. Called by `__main__`;
the shell, `faces.watch` and `faces.export` use `commands`, `dispatch`, `extras`, `typer_runner`,
`session.lookup` and parts of `start`.
"""
