"""Find requests, rules and statements in a conversation by its words, as verbatim quotations.

`conversation` leaves out what relay itself typed; `sentences` cuts text into quotable pieces; `phrases` looks
up the expressions of `phrases.toml`, and `salience` weighs a statement by them; `requests` finds what the
user wants, `statements` what the agent decided, tried and intends. Every expression takes linear time. Called
by `build`, `budget`, `fidelity`, `outcomes`, `_merge` and `_check_commands` of the room above; the engine
uses `strip_packets`.
"""
