"""Read and judge handoffs for the command line.

Public names: `records` finds and describes them (`find_record`, `build_row`), `drawing` draws a session
over time and as a tree, `evidence` says what is known of criteria and results, `verdict` has the commands
`complete` and `fail`. Used by `handoff`.
"""
