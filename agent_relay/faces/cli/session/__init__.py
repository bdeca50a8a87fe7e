"""Run the commands about sessions: start and continue work, look at it, hand it over, and read its packets.

`agent.run_agent` opens, hands over or attaches; `attach.follow` shows a session on this terminal until it
ends or the person detaches; `relay_prompt.run_prompt_line` answers a line typed behind the relay key, in
words for that place, and `slash_commands` checks the words of a line there and in the shell; `run` has `run`
and `chat`, which work without a screen. `status` is that command, `sessions` has `sessions`, `stop` and
`take-over`; `handoff` has `handoff`, `relay` and `undo-handoff`; `packet` has the table of `packet`'s
sub-commands, of which `packet_transfer` and `packet_reading` are loaded when they are called; `recall`
searches a session's record. `lookup.find_session` finds the session that a word of the command line means,
`choose_running` one that can go on; `native_sessions` lists the sessions agents keep themselves. Called by
`dispatch` and the shell.
`status`, `lookup`, `agent` and `attach` are hot: they import nothing heavy at their start.
"""
