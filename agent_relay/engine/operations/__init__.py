"""The requests about sessions that the daemon answers, each module as a table of handlers by name.

Public names: build_handlers, build_handoff_handlers, build_narrate_handlers, build_run_handlers,
build_chat_handlers. Called by the daemon's application; `headless_turns` and `chats` are loaded at their
first request.
"""
