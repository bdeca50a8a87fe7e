"""Model documents with pydantic: what people write by hand, and the resume packet.

`adapter` (`Adapter`), `rules` (`Rules`), `config` (`UserConfig`, `ProjectConfig`, `build_roster`) and
`packet` (`ResumePacket`, `parse_packet`, `render_json`, `fingerprint`); `record_matching` evaluates the
conditions of rules; `document` (`Document`, `Strict`) is the base of all. Called by `agents`, `detect`,
`packet`, the engine, the store and commands. No hot command may load them.
"""
