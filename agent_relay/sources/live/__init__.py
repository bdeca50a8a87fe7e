"""Follow the structured records of living legs, and deliver them as they are written.

`RecordDispatcher` is the entrance: the daemon makes one, and the engine uses it. It feeds each leg's listener
from one `SourceSet`, which has a `SourceReader` for each source in files and an `EventReader` for each event
stream, and is woken by one `FolderWatch`.
"""
