"""Find in an agent's record what a packet quotes.

`sentences` cuts text into pieces, weighs them by the expressions of `phrases.toml`, which is data, and lists
what texts share. `pastes` separates what a user pasted. Built on them are `requests` (what the user wants,
and the rules), `statements` (what agents chose and gave up) and `outcomes` (the results of commands). `turns`
lists a leg's turns, `ledger` keeps the exchanges that would be missed, `later_changes` finds what was taken
back since. `restated` drops an agent's repetition of the packet it was given, `provenance` records where a
quotation was found, `quotable` drops what no packet quotes. Pure.
"""
