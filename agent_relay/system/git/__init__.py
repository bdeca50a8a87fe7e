"""Run git without side effects, and do with working trees what relay needs.

`run` starts every git that touches a repository; `tree_state` reads what has changed in a tree (`read_tree`,
`find_root`); `snapshot` saves trees as commits in a race's own store and reads the differences between them
(`write_snapshot`, `read_changes`); `worktree` makes and removes a runner's worktree; `apply` applies a
runner's changes to the user's tree. Packets, sessions, races and some commands call `tree_state`; the rest
serves races.
"""
