"""Turn facts into the resume packet a successor reads.

A packet is built from facts, tree, signal and the packet before (`build`), fitted into its size (`budget`)
and rendered through the adapter's template (`render`); `airc` writes and reads the AIRC form, `edits`
merges what a user changed in its text, `freshness` finds what changed since and measures what a packet
keeps, `handoff_facts` adds what relay itself knows of the handoff and finds what the agent's own record
lacks, `narrative` asks the outgoing agent for its own document, `digest` makes what a successor may write
one from instead. What a record says is found by `extract`, whose phrases are data; `recall` searches what
earlier agents were asked, said and did. Every expression takes linear time. Public names: `build_packet`,
`fit_packet`, `compile_template`, `render_packet`, `mark_stale`, `absorb_edit`, `add_terms`, `trim_facts`,
`verify_freshness`, `render_airc`, `parse_airc`, `score_text`, `Search`. Called by the engine when it
publishes a handoff, by `agents`, the sources and the store, and by the `packet`, `recall` and `handoff`
commands. Pure: no model is asked, and everything quoted is verbatim.
"""
