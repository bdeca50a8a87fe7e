"""`agent-relay watch`: sessions live on a whole terminal, as lines or JSON events, or in a browser.

Journals are read from files; what only the daemon knows comes from the daemon, which watching never starts.
Public: `watcher.Watcher` and `WatchedSessions`, `view.View` and `list_changes`, `figures_text` (`export` uses
these), and `command.run`, which the table of commands names. The page's three files are in `page/` beside
`_web`, which finds them by its own path.
"""
