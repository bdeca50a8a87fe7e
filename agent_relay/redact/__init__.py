"""Find and remove secrets in text, facts, packets and journal events; leave ordinary code as it is.

`text` and `packet` (events, too) remove them, `known_values` gathers what is or is not one, `rules` says what
a rule is; the other modules hold the rules. Public names: `redact_text`, `redact_words`, `redact_facts`,
`redact_packet`, `redact_body`, `collect_keys`, `collect_fact_keys`, `AllowList`, `build_allow`,
`collect_known`, `PLACEHOLDER`.
Called before anything is written or shown: by the engine, the faces, `race` and `system.config_file`. Every
expression is linear, and the rules take long to load, so that hot callers import `text` where they use it.
"""
