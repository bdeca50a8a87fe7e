"""Read the agents' own records of usage, incrementally.

`plan` decides which files of which agent are to be read, `files` finds them, `growing_file` reads the new
part of one, `index` remembers what was read, and `damage` counts the lines that could not be read.
`usage._native_usage` is the entry point, and `usage._scan_reader` puts index and reading together.
"""
