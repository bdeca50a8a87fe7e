"""Give agents the tools by which they speak for their own session, over the Model Context Protocol.

`pipe` is the small program that an agent starts: it connects the agent's standard streams to the one server
of this user, and runs by its path with the standard library alone. `server` is that server, a process of its
own that the daemon starts when a pipe asks for it, with the official SDK; `_tools` are its tools, each of
which is an operation of the daemon. `command` is `agent-relay mcp`: the pipe for people (`run_mcp`), and
its words `install`, `uninstall` and `status`, for an agent that takes tools only so. Called through
the table of commands, by the daemon and, by way of adapters, by agents.
"""
