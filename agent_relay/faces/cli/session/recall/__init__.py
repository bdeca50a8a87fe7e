"""Implement `agent-relay recall`, which searches a session's record.

`record` finds the session, has the turns of its earlier agents read and cleans texts for display
(`read_record`); `command` parses the arguments and prints (`recall`). Called through the table of commands.
"""
