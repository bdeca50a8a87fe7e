"""Write and read what relay keeps of sessions: journals, packets, the index, the ledger, project folders.

Its public names are `Journal` and `read_journal` (the append-only lines of sessions and races),
`SessionJournal`, `create_journal` and `open_journal`, `JournalTail`, `set_aside` (a journal that cannot be
read), `publish_packet` and `read_delivery_text`, `read_ledger` and `update_ledger`, `read_windows`,
`open_project`, `claim_tree`, `open_edit_buffer`, and the functions of `session_index`, among them
`read_summary` and the like for commands that must start fast. The engine and races write through it, and so
do commands that edit packets, limits or project folders; `usage` only reads. Nothing here decides what a
session does next.
"""
