"""Find in an agent's record what a packet quotes.

`sentences` cuts text into pieces and weighs them by the expressions of `phrases.toml`, which is data.
`pastes` sets apart what a user pasted. On them stand `requests` (what the user wants, and the rules),
`statements` (what agents chose and gave up) and `outcomes` (what came of commands). `turns` lists a leg's
turns, `ledger` keeps the exchanges that would be missed, `later_changes` finds what was taken back since.
`restated` leaves out how an agent answers the packet it was given, `terms` tell what texts share,
`provenance` says where a quotation was found, `quotable` drops what no packet quotes. Pure.
"""
