"""Define small values with rules of their own, shared by all rooms.

`ids` (`LegId`, `Owner`, `Tree`), `names` (ULIDs, variables, the relay key, versions), `moments`
(`parse_moment`, `render_moment`, `find_end`: when a rest is over), `elapsed` (`Start`, `ClockJump`) and
`project_layout` (the names of files and folders in `.agent-relay`). Called by every room. Hot commands load
`names`, `moments` and `project_layout`, which import nothing but the time when they are loaded.
"""
