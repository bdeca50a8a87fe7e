"""See one leg through its life in the daemon: start or adopt, monitor, supervise to the end, clean up.

Public names: `LegMonitor`, `LegSupervisor`, `start_leg`, `stop_leg`, `release_legs`, `RestWriter`,
`LaunchEnvironment`, `BarSender`. `leg_start` begins a leg, `headless` one without a screen; `monitor` reads
it with `_trackers` and `_prompt_tracker`; `limits` counts budgets and notes rests; `shutdown` ends it;
`adopted_programs` watches programs the user started; `terminal_messages` are what its terminals show of
relay. Called by the effect runner, `sessions`, `operations` and race's runners; `delivery` reads a leg's
monitor to know when text can be typed.
"""
