"""The requests about sessions that the daemon answers, each module as a table of handlers by name.

Public names: `sessions.build_handlers`, `handoffs.build_handoff_handlers` and `build_narrate_handlers`,
`headless_turns.HeadlessTurns` and `build_run_handlers`, `chats.build_chat_handlers`. Called by the daemon's
application and by race's runners; `headless_turns` and `chats` are loaded at their first request.
"""
