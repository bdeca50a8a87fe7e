"""Model documents: what people write by hand, as structs, and the resume packet, with pydantic.

`adapter` (`Adapter`), `rules` (`Rules`), `config` (`UserConfig`, `ProjectConfig`, `build_roster`) and
`packet` (`ResumePacket`, `parse_packet`, `render_json`, `fingerprint`); `record_matching` evaluates the
conditions of rules; `handwritten` (`Strict`, `MistakeError`) and `document` (`Document`) are the bases.
Called by `agents`, `detect`, `packet`, the engine, the store and commands. No hot command may load them.
"""
