"""Text for people: how counts, limits, commands and reasons are worded, and text made safe to show.

`counts`, `limit_names`, `commands` (`agent_command`, `COMMAND_NAMES`), `hints`, `install_hint`, `reasons`
(`find_reason`), `plain` (`clean_text`), `patterns` (`compile_late`), `pattern_probes`. Every package above
may call it; `commands` and `limit_names` import nothing, for hot commands.
"""
