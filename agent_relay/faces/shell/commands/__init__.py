"""What stands behind the slash: one table, from which help, completion and the page of docs are made."""
