"""Keep files and folders safe: no reader sees half a file, and no other user can reach into ours.

`files` (`write_atomic`, `read_bounded`; `open_regular`, `open_stream`: the one way to open what others
wrote), `folders` (`get_folders`, `ensure_private`, `get_cwd`), `locks` (`take_lock`, `lock_folder`),
`removal` (`remove_tree`, `try_writing`), `folder_alarm` (inotify), and `file_transaction`, which changes
several files as one step. Called by every room that reads or writes anything. Hot commands load `files` and
`folders`, and holders `folder_alarm`: those stay free of heavy imports.
"""
