"""Answer the requests about sessions that the daemon gets, each module as tables of handlers by name.

Public names: `build_handlers` and `build_narrate_handlers` of `sessions` (sessions and handoffs), and
`HeadlessTurns`, `build_run_handlers` and `build_chat_handlers` of `headless_turns`. Called by the daemon's
application and by race's runners; the handlers of `headless_turns` are made at their first request.
"""
