"""Terminals: the pseudo-terminal an agent runs on, the screen it shows, what a person types, and the holder.

`_pty` starts a program on a terminal of its own; `keystrokes`, `held_keys` and `query_answers` read a
person's input (`KeyScanner`); `bar_row` and `_bar_frame` draw the bar; `notification` calls for the person;
`leg_folder` makes and finds the folders of legs; `holder_start`, `holder_check` and `holder_client` start a
holder, check that one can be started, and talk to it (`start_holder`, `HolderConnection`). Rooms within:
`emulation` (the screen) and `holder` (the process). The engine calls the holder's side; an attached client
loads the parts it draws with, which import nothing heavy.
"""
