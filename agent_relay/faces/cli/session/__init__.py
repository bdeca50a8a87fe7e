"""Commands about sessions: `status`, `sessions`, `stop` and `take-over`.

`lookup.find_session` finds the session that a word of the command line means and `lookup.list_live_here` the
sessions of this folder; most other commands and the shell use them. `native_sessions` lists the sessions
agents keep themselves. `status` and `lookup` are hot: they must import nothing heavy at their start.
"""
