"""An agent's screen, emulated exactly by libghostty-vt.

`emulator` (`Emulator`: bytes in; screen, modes, repaint and answers out) upon `ghostty` (the library's C
interface) and `repaint`; `output_scanner` finds what the emulator does not tell, `snapshot` makes JSON
values of a screen, `library` finds the shared library. Called by the holder, by `replay` and by `doctor`.
Standard library only: every holder loads it.
"""
