"""Small values with rules of their own, shared by all packages.

`ids` (`SessionId`, `Owner`), `ulid`, `environment`, `versions`, `relay_key`, `moments`, `elapsed`
(`Start`, `ClockJump`), `quiet_hours`, `rest_end`, `working_tree` (`Tree`), `project_layout` (the names of
files and folders in `.agent-relay`). Hot commands load `ulid`, `environment`, `versions`, `relay_key`,
`moments` and `project_layout`, which import nothing when they are loaded; `status` loads `rest_end`.
"""
