"""The library that faces use to reach sessions through the daemon.

It finds or starts the user's one daemon, asks it over one connection, follows headless turns to their end,
and keeps a person's terminal on a session (`attach`). Public: `connection.Connection`,
`autostart.connect_or_start`, `keepalive.watch_daemon`, `environment.bring_environment`,
`turn_follower.TurnFollower`, `waiting_turn.WaitingTurn`, `signal_trap.SignalTrap`,
`relay_key.read_relay_key`, `narration.Narration`, `plain_command.PlainCommand`. Called by the command line,
the shell and `watch`. Hot commands import it: nothing here loads typer, pydantic, rich or asyncio.
"""
