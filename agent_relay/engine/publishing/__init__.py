"""Write a handoff's packet: facts gathered, redacted and fitted in a limited process, then published.

`recall_building` answers an agent's `recall`. Public names: `PacketPublisher`, `CheckpointKeeper`,
`redact_event`, `redact_request`, `redact_in_thread` and `HandoffPreparation` of `limited_work`;
`read_packet_text` and `find_spoilt` of `packet_pipeline`; `find_native` and `check_owners` of
`native_records`. Called by the effect runner; redaction also by `sessions`, the operations and `race`, what a
packet says by the delivery and `legs`. `packet_pipeline` is heavy, and loaded when it is needed.
"""
