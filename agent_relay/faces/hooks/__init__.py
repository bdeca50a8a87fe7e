"""Install, show and remove hooks in the configuration of agents that relay does not start.

Its public names are `command.HOOKS`, the functions of `agent-relay hooks` by sub-command. `agents.hook_files`
reads and changes relay's part of a file; the daemon follows what hooks report
(`engine.unmanaged_agents`). Called by the command line's dispatch.
"""
