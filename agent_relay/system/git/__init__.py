"""Git: its program run without side effects, and what relay does with working trees.

`run` starts every git of ours; `tree_state` says what has changed in a tree (`read_tree`, `find_root`);
`snapshot` writes trees down as commits in a store of a race's own and compares them; `changes` parses git's
diffs; `worktree` makes and removes a runner's worktree; `apply` puts a runner's changes onto the user's
tree. `tree_state` is called by packets and sessions, the others by races.
"""
