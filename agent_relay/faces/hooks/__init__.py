"""Install, show and remove hooks in the configuration of agents that relay does not start.

Its public names are `command.HOOKS`, the functions of `agent-relay hooks` by sub-command. What a file holds
of ours and how it is changed is `agents.hook_files`; what a hook reports is followed by the daemon
(`engine.unmanaged_agents`). Called by the command line's dispatch.
"""
