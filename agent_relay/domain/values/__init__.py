"""Small values with rules of their own, shared by all packages.

`ids` (`SessionId`, `Owner`), `ulid`, `environment`, `versions`, `relay_key`, `moments`, `elapsed`
(`Start`, `ClockJump`), `quiet_hours`, `rest_end`, `working_tree` (`Tree`). Hot commands load `ulid`,
`environment`, `versions`, `relay_key` and `moments`, which import nothing when they are loaded; `status`
loads `rest_end`.
"""
