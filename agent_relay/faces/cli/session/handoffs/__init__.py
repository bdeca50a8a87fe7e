"""Read and judge handoffs for the command line.

Public names: `records` finds and describes them (`find_record`, `build_row`), `drawing` draws a session's
as a tree, `chart` draws a session over time, `evidence` says what is known of criteria and results, `verdict`
has the commands `complete` and `fail`. Used by `handoff`.
"""
