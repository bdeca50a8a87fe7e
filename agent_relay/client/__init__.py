"""Reach sessions through the daemon: the library that faces use.

It finds or starts the user's one daemon, asks it over one connection, follows headless turns to their end,
and keeps a person's terminal on a session (`attach`). Public: `connection.Connection`,
`autostart.connect_or_start`, `ask_daemon` and `stop_daemon`, `keepalive.watch_daemon` and
`bring_environment`, `turn_follower.TurnFollower`, `WaitingTurn` and `SignalTrap`,
`attach.prompt.read_relay_key`, `pending_answers.Narration` and `PlainCommand`. Called by the command line,
the shell and `watch`. Hot commands import it: nothing here loads typer, pydantic, rich or asyncio.
"""
