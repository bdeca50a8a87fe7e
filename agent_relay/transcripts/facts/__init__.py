"""Read the facts of one conversation from an agent's native transcript.

One module for each agent; where its format is large, its rows, items or tool calls have a module of their
own. `readers` is the table adapters choose from by `transcript.reader`; `reader_types` defines what
readers take and return; `_fact_collector` gathers facts in the order of the transcript. Public names:
`READERS`, `TranscriptReader`, `TranscriptSource`, `Peek`, `Tables`, `Ancestor`, `ForkPoint`. Called by
the sources.
"""
