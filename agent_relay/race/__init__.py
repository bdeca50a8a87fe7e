"""Race several agents at one task, each in its own worktree, and score them by one test.

Public: `registry.RaceRegistry` and `registry.build_race_handlers` (begin, resume, stop, apply, clean and show
races in the daemon), `runner.SessionRunners` (runners as headless turns of sessions), `journal` (find and
read races), `model.Race` and `build_race_view`, and `schema` (what `race --json` prints). The daemon creates
the registry; `agent-relay race` reads journals and views. A race's journal is the truth: a race can be
interrupted anywhere and resumed.
"""
