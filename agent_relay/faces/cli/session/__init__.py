"""Run the commands about sessions: `status`, `sessions`, `stop` and `take-over`.

`status` is that command, `sessions` has the other three. `lookup.find_session` finds the session that a word
of the command line means and `lookup.list_live_here` the sessions of this folder; most other commands and the
shell use them. `health` (`choose_running`, `list_damaged`) tells which sessions can go on, `native_sessions`
(`offer_native_session`) lists the sessions agents keep themselves. `status` and `lookup` are hot: they must
import nothing heavy at their start.
"""
