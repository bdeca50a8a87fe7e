"""Read what agents leave behind: records of living legs, and the sessions agents keep on disk.

Its public names are `RecordDispatcher` (every living leg's records as they are written; its `SourceSet` has a
`SourceReader` for each source in files, an `EventReader` for each event stream, and one `FolderWatch` that
wakes it), `find_names` and `read_totals` (what an agent's records say), `read_facts`, `read_whole_facts`
and `query_database` (an agent's transcripts, which are only ever read), `read_records` (what all legs of a
session left), `build_record` and `get_turn` (its turns, to be searched), `find_native_sessions` and
`find_transcript`, `fork_session`, `find_holding` and `end_programs` (programs people started themselves), and
`read_recording`, `read_evidence` and `play` for `agent-relay replay`. The engine follows legs and adopts
sessions with it; `usage` reads transcripts through it; the faces list sessions, search records and replay
recordings. `hook`, which agents call, is at the top of the package instead: it runs by its path and imports
nothing.
"""
