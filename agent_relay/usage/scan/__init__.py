"""Read the agents' own records of usage, incrementally and by several processes.

`plan` says which files of which agent are to be read, `files` finds them, `growing_file` reads the new part
of one, `reader_pool` has new files read by forked processes, `index` remembers what was read, and `reader`
puts the three sources together; `damage` counts the lines nobody could read. `usage.native_usage` is the
entrance. `plan`, `files`, `growing_file` and `reader_pool` are loaded before the processes are forked and
must stay light; `index` and `reader` come after.
"""
