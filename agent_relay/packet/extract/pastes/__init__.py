"""Set apart what a user pasted into a prompt and others wrote.

`split` is the door: `split_pasted` returns the user's own words and the pasted runs. Lines are read by their
marks (fences, quotations), their shapes (logs, traces, tables, mails) and the frames around them ("from the
wiki:"), and grouped into blocks. Called where a packet's facts are prepared. Pure, and linear in the text.
"""
