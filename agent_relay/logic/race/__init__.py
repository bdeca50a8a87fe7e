"""Races as data: what changed where, who touches the same lines, who won, and what is to be done next."""
