"""Give access to this machine: processes, the clock, disk, configuration files, git and the network.

Processes (`processes`), programs started and run to their end (`spawn`, `programs`, `headless`), work that
can be ended (`limited_process`), the clock (`clock`), failures and crash reports (`failures`,
`crash_reports`), and what people wrote by hand: `config_file` (`read_user_config`, `parse_document`,
`gather_secrets`) and `pattern_cost` (`refuse_slow`). Rooms within: `disk` (files, folders, locks), `git`, and
`net` (sockets and messages to the outside). Every room above calls it; it knows nothing of sessions.
`failures`, `processes`, `spawn` and `disk.folder_alarm` are loaded by every holder and so need the standard
library alone; `headless_parent` and `work_server` are programs that are run by their paths.
"""
