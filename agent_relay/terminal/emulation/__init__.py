"""Emulate an agent's screen exactly, by libghostty-vt.

`emulator` (`Emulator`: bytes in; screen, modes, repaint and answers out) on top of `ghostty` (the library's C
interface) and `repaint`; `output_scanner` finds what the emulator does not report, `snapshot` makes JSON
values of a screen, `library` finds the shared library. Called by the holder, by `replay` and by `doctor`.
Standard library only: every holder loads it.
"""
