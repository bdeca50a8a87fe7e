"""Write and read what relay keeps of sessions: journals, packets, the index, the ledger, project folders.

Its public names are `Journal` and `read_journal` (the append-only lines of sessions and races),
`SessionJournal`, `create_journal` and `open_journal`, `JournalTail`, `publish_packet` and
`read_delivery_text`, `read_ledger` and `update_ledger`, `open_project`, `claim_tree`, the functions of
`session_index`, and `read_summary` and the like in `session_summaries` for commands that must start fast.
The engine and races write through it, and so do commands that edit packets, limits or project folders; usage
only reads. Nothing here decides what a session does next.
"""
