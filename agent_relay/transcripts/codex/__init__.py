"""Codex' rollouts.

`records` knows the format, `items` reads calls and patches, `facts` and `usage` read it. Only `fact_readers`
and `usage_readers` of the room above import them.
"""
