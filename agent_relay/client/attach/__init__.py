"""Keep a person's terminal on a session while its agents come and go.

Raw mode and back, the loop on one leg, the prompt behind the relay key, and what is shown while every agent
rests. Public: `session_loop.SessionLoop` (over several legs), `held_terminal.HeldTerminal` and `loop.attach`
(one leg), `rest_screen.show_rest`, `prompt.PendingAnswer`, `tty.UserTerminal` and `tty.LentTerminal`. Called
by `agent-relay attach`, by an agent's name, by the shell's `/attach`, and by `watch` for its terminal. What
only a key or a message needs is imported at that moment, to keep attaching fast.
"""
