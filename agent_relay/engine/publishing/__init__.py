"""Write a handoff's packet: facts gathered, redacted and fitted in a limited process, then published.

Public names: `PacketPublisher` and `load_and_publish`; `redact_event`, `redact_request`, `redact_in_thread`
and `ProgramPrestart` of `limited_work`; `read_packet_text`, `find_native`, `find_spoilt`. Called by the
effect runner; redaction also by `sessions`, `operations` and `race`, what a packet says by `delivery` and
`legs`. Only `packet_publisher` and `limited_work` are loaded at the daemon's start; the others are heavy and
loaded when needed.
"""
