"""See one leg through its life in the daemon: start or adopt, monitor, supervise to the end, clean up.

Public names: `LegMonitor`, `LegSupervisor`, `start_leg`, `stop_leg`, `release_legs`, `RestWriter`,
`BarSender`, `SessionNotifier`, `check_headless`. `leg_start` begins a leg, with a screen or without one;
`monitor` reads it with `_trackers`, `turn_stream` the output of a headless one; `limits` counts budgets and
notes rests, and knows when a standby may be started; `shutdown` ends it; `terminal_messages` are what people
see of relay on its terminals and elsewhere. Called by the effect runner, `sessions`, the operations and
race's runners; `text_delivery` reads a leg's monitor to know when text can be typed.
"""
