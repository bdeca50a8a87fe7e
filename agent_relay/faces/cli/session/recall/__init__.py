"""Answer `agent-relay recall`: a session's record, searched.

`record` finds the session, reads the turns of its earlier agents and knows how texts are made fit to be shown
(`read_record`); `command` parses the words and prints (`recall`). Called through the table of commands.
"""
