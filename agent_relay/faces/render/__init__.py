"""Print what faces show: lines and tables for people, JSON for programs, turns on a terminal.

`output` prints lines, tables, errors and JSON and escapes control characters of foreign text;
`turn_view.TurnView` shows a turn as it goes; `turn_printer` shows the turns of `run` and `chat`;
`packet_view` shows a packet to people (`render_head`, `render_sections`); `day_bars` draws usage by day.
Called by every face. `output` is hot: it imports nothing heavy.
"""
