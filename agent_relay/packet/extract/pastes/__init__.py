"""Separate text by others that a user pasted into a prompt from the user's own words.

`split` has the public function: `split_pasted` returns the user's own words and the pasted runs. Lines are
recognised by their marks (fences, quotations), their shapes (logs, traces, tables, mails) and the lines that
introduce them ("from the wiki:"), and grouped into blocks. Called where a packet's facts are prepared. Pure,
and linear in the length of the text.
"""
