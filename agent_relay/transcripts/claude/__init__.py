"""Claude Code's transcripts.

`records` knows the format, `tree` follows its parent links, `facts` and `usage` read it. Only `fact_readers`
and `usage_readers` of the room above import them.
"""
