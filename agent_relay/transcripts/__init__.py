"""Read the agents' native transcripts: facts and usage, in one format for each agent.

The one place in code that knows the agents by name. `facts` reads what a packet is built from, `usage`
reads tokens, turns and changed lines. What they share is here: each format's records and how its tokens are
counted (`_claude_format`, `_codex_format`, `_gemini_format`, `_opencode_format`), `token_counts`,
`lenient_json`, `message_text` and `_diff_counts`. `stream_parser` cuts byte streams into lines and JSON
objects for the sources. Public names: `READERS`, `USAGE_READERS`, `TranscriptSource`, `TranscriptReader`,
`JsonStream`, `LineSplitter`, `clip`. Called by the sources, by usage, and by the engine. Pure: the callers
read the files.
"""
