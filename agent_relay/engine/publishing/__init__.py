"""Writing a handoff's packet: facts gathered, redacted and fitted in a process with a limit, then published.

Public names: PacketPublisher, publish, redact_event, redact_request, run_limited. Called by the effect
runner; redaction also by `sessions`, `operations` and `race`. Only `packet_publisher`, `redaction` and
`limited_work` are loaded at the daemon's start; the others are heavy and loaded when needed.
"""
