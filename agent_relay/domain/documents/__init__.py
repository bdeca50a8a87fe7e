"""Documents as pydantic models: what people write by hand, and the resume packet.

`adapter` (`Adapter`), `rules` (`Rules`), `config` (`UserConfig`, `ProjectConfig`, `build_roster`),
`packet` (`ResumePacket`) and `packet_json`; `record_matching` evaluates the conditions of rules;
`document` (`Document`, `Strict`) is the base of all. No hot command may load them.
"""
