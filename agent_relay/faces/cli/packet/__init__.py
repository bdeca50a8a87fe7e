"""Run `agent-relay packet`: show, compare, edit, verify, export, import and build resume packets.

`command` has the table of sub-commands and shows packets; the other sub-commands (`edit`, `transfer`,
`verify`) take long to load and are loaded by name when they are called. `lookup.find_packet` finds the packet
that the command line means. Called by `dispatch`; `edit` and `lookup` also by the relay prompt.
"""
