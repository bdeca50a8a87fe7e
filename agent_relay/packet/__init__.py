"""Turn facts into the resume packet a successor reads.

A packet is built from facts, tree, signal and the previous packet (`build`), cut to its size (`budget`) and
rendered through the adapter's template (`render`). `airc` writes and reads the AIRC form, `edits` merges
a user's changes to its text, `repeats` drops from that text what it says elsewhere, `freshness` finds what
changed since and measures what a packet keeps, `handoff_facts` adds what relay itself knows of the handoff
and finds what the agent's own record lacks. `narrative` asks the outgoing agent for its own document;
`digest` condenses the record, so that a successor can write that document instead. `extract` finds what
a record says, by phrases that are data; `recall` searches what earlier agents were asked, said and did.
Every expression takes linear time. Public names: `build_packet`, `fit_packet`, `compile_template`,
`render_packet`, `mark_stale`, `absorb_edit`, `add_terms`, `trim_facts`, `verify_freshness`, `render_airc`,
`parse_airc`, `score_text`, `Search`. Called by the engine when it publishes a handoff, by `agents`, the
sources and the store, and by the `packet`, `recall` and `handoff` commands. Pure: no model is asked, and
everything quoted is verbatim.
"""
