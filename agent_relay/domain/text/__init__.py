"""Word what people read, and make text safe to show.

`names` (`agent_command`, `COMMAND_NAMES`, `name_limit`, `name_window`) words commands and limits; `hints`
(`render_at_key`, `render_in_shell`, `render_install`) words a command as it is typed where it is shown;
`plain` (`clean_text`, `render_count`, `find_reason`, `compile_late`) removes escape sequences, counts, and
quotes reasons. Every room above may call it; `names` imports nothing, for hot commands.
"""
