"""Read the agents' native transcripts: facts and usage, in one format for each agent.

The one place in code that knows the agents by name. `fact_readers` (`READERS`) is the table an adapter
chooses from by `transcript.reader` for what a packet is built from, `usage_readers` (`USAGE_READERS`) the one
for tokens, turns and changed lines; `fact_reading` and `usage_records` define what readers take and return.
Each agent has one module or room within that knows its format (`claude`, `codex`, `_gemini`, `_opencode`,
`_demo`). What they share: `lenient_json`, `message_text` and `_diff_counts`. `stream_parser` cuts byte
streams into lines and JSON objects for the sources. Called by the sources, by `usage`, and by the engine.
Pure: the callers read the files.
"""
