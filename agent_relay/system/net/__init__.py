"""Open sockets, and send messages that leave this process.

`unix_sockets` (`listen`, `connect`: between client, daemon and holders), `webhook` (`Webhook`,
`show_on_desktop`, and `Deadline`, a limit for a whole request), `delivery_report` (what a receiver did not
take, and when that is reported), `reserved_port` (a port of this user alone). The first is loaded by hot
commands, the others by the daemon, by `export` and by the proxy.
"""
