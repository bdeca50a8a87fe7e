"""One leg's life in the daemon: started or adopted, monitored, supervised to its end, cleaned up after it.

Public names: LegMonitor, LegSupervisor, LaunchEnvironment, BarSender. Called by the effect runner,
`sessions`, `operations` and race's runners; `delivery` reads a leg's monitor to know when text can be typed.
"""
