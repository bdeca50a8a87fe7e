"""Run `agent-relay watch`: sessions live on a whole terminal, as lines or JSON events, or in a browser.

Journals are read from files; what only the daemon knows comes from the daemon, which watching never starts.
Public: `watcher.Watcher` and `WatchedSessions`, `view.View` and `list_changes`, `lines.render_unknown_rests`
(`export` uses these), and `command.watch`, which the table of commands names. `_watch_loop` keeps the view
current; `_full_screen` with `_layout`, `lines` and `_web` show it. The page's files are in `page/`
beside `_web`, which finds them by its own path.
"""
