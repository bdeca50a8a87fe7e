"""Git: its program run without side effects, and what relay does with working trees.

`run` starts every git of ours; `tree_state` reads what has changed in a tree (`read_tree`, `find_root`);
`snapshot` saves trees as commits in a race's own store and compares them; `changes` parses git's diffs;
`worktree` makes and removes a runner's worktree; `apply` applies a runner's changes to the user's tree.
`tree_state` is called by packets and sessions, the others by races.
"""
