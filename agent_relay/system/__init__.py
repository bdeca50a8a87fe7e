"""Access to this machine: processes, the clock, disk, configuration files, git and the network.

Processes and programs (`processes`, `programs`, `headless`, `limited_process`), the clock (`clock`), failures
and crash reports (`failures`, `crash_reports`), the identity of this machine (`machine_identity`) and the
command by which agents call us back (`hook_command`). Rooms within: `disk` (files, folders, locks), `config`
(what people wrote by hand), `git`, and `net` (sockets and messages to the outside). Every room above calls
it; it knows nothing of sessions. `failures`, `processes` and `disk.folder_alarm` are loaded by every holder
and so need the standard library alone; `headless_parent` and `work_server` are programs that are run by their
paths.
"""
