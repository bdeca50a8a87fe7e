"""Read the agents' native transcripts: facts and usage, in one format for each agent.

The one place in code that knows the agents by name. `fact_readers` (`READERS`) is the table an adapter
chooses from by `transcript.reader` for what a packet is built from, `usage_readers` (`USAGE_READERS`) the one
for tokens, turns and changed lines; `fact_reading` and `usage_records` define what readers take and return.
Each agent has modules of its own that know its format (`_claude_usage`, `_claude_facts` and its
`_claude_tree`, `_codex_usage`, `_codex_facts` and its `_codex_items`, `_gemini`, `_opencode`, `_demo`). They
share `lenient_json`. Called by the sources, by `usage`, and by the engine. Pure: the callers read the files.
"""
