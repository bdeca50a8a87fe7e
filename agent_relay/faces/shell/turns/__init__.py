"""Run the turns of a shell: typed messages, given to the agent one after the other.

They wait in a queue on disk (`message_queue`); `runner` gives them to the agent, `session_release` frees the
session before a turn, `agent_switch` decides and changes which agent has the next one. Called by `_app`,
`_startup` and `commands`, and imports none of them.
"""
