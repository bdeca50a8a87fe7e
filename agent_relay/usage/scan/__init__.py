"""Read the agents' own records of usage, incrementally and by several processes.

`plan` decides which files of which agent are to be read, `files` finds them, `growing_file` reads the new
part of one, `reader_pool` has new files read by forked processes, `index` remembers what was read, and
`damage` counts the lines that could not be read. `usage._native_usage` is the entry point, and
`usage._scan_reader` puts index, pool and direct reading together. `plan`, `files`, `growing_file` and
`reader_pool` are loaded before the processes are forked and must stay light; `index` and
`usage._scan_reader` come after.
"""
