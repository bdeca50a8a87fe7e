"""The relay shell: one prompt, many turns, whichever agent has them."""
