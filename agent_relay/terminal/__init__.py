"""Handle terminals: an agent's pseudo-terminal and screen, what a person types, and the holder.

`keystrokes` (`KeyScanner`, `HeldKeys`) and `query_answers` read a person's input; `bar_row` and `_bar_frame`
draw the bar; `notification` calls for the person; `restore` undoes every mode an agent can have set;
`leg_folder` makes and finds the folders of legs; `holder_client` starts a holder, checks that one can be
started, and talks to it (`start_holder`, `HolderCheck`, `HolderConnection`); `waiting_holder` keeps one ready
for the next leg. Rooms within: `emulation` (the screen) and `holder` (the process, and the pseudo-terminal
its program runs on). The engine and the daemon call the holder's side; an attached client loads the parts it
draws with, which import nothing heavy.
"""
