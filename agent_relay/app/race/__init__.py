"""Races: agents at one task, each in a worktree, driven, watched and decided in the daemon."""
