"""Read Codex' rollouts.

`records` knows the format, `items` reads calls and patches, `facts` (`read_codex`, `peek_codex`) and `usage`
(`read_codex_usage`) read it. Only `fact_readers` and `usage_readers` of the room above import them.
"""
