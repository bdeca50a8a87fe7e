"""The events of a session's journal as types, and their JSON.

`session` has `Event`, the union `Body` and the lines about the session and its legs; `handoff`, `turn` and
`usage` have the lines of their subjects; `codec` (`render_event`, `parse_event`) turns them into JSON
objects and back. Whoever decides, writes, reads or redacts a journal uses it.
"""
