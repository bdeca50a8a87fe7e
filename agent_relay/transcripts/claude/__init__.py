"""Read Claude Code's transcripts.

`records` knows the format, `tree` follows its parent links, `facts` (`read_claude`, `peek_claude`) and
`usage` (`read_claude_usage`) read it. Only `fact_readers` and `usage_readers` of the room above import them.
"""
