"""Keep sessions at work in the daemon: start and monitor legs, perform handoffs, deliver packets.

`session` (pure) decides what a session does; this room performs the effects and feeds their results back as
inputs. `sessions` finds, opens and keeps the sessions: a `SessionRegistry` has a `Host` for each, which takes
inputs in turn and journals the resulting events; its `EffectRunner` performs the effects; its `LegSupervisor`
sees the agents' processes to their end, each read by a `LegMonitor` (`legs`). `delivery` types into them,
`publishing` writes packets, `operations` answers requests. Public names outside these: `Services`, which all
sessions share, `NarrativeWriter`, and `DedicatedThread` and `finish` of `threads`. Called by `daemon`, which
composes and serves it, and by `race`, whose runners are sessions.
"""
