"""Find in an agent's record what a packet quotes.

`sentences` cuts text into pieces and weighs them by the expressions of `phrases.toml`, which is data. On it
stand `requests` (what the user wants, and the rules), `statements` (what agents chose and gave up) and
`outcomes` (what came of commands). `provenance` says where a quotation was found, and
`pasted` sets apart what a user pasted and others wrote. Pure.
"""
