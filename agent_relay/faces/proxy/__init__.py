"""The opt-in proxy on this machine, through which agents' requests to their providers may pass.

`__main__` is its process, which the daemon starts and keeps, and which outlives it; `_server` speaks HTTP
with the agents, `_upstream` with the providers, and `_evidence` notes what status codes and headers say of
limits. `command` is `agent-relay proxy`. Public names:
`command.show_proxy`. Called by the command line; nothing imports it but that.
"""
