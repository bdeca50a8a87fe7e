"""Follow the structured records of living legs, and deliver them as they are written.

`RecordDispatcher` is the entrance: one for the whole daemon, used by the engine. It feeds each leg's
listener from one `SourceSet`, which has a `SourceReader` for each source in files and an `EventReader` for
each event stream, and is woken by one `FolderWatch`.
"""
