"""Keep sessions at work in the daemon: start and monitor legs, perform handoffs, deliver packets.

`session` (pure) decides what a session does; this room performs the effects and feeds their results back as
inputs. `sessions` finds, opens and keeps the sessions: a `SessionRegistry` has a `Host` for each, which takes
inputs in turn and journals the resulting events; its `EffectRunner` performs the effects; its `LegSupervisor`
sees the agents' processes to their end, each read by a `LegMonitor` (`legs`). `text_delivery` types into
them, `publishing` writes packets, `session_operations` and `turn_operations` answer requests, each as a table
of handlers by name, `agent_operations` those of agents' own tools; those of turns and tools are made at their
first request. `unmanaged_agents` hears of limits in agents that relay did not start, `proxy_keeper` keeps the
proxy running. Public names outside these: `Services`, which all sessions share, `LaunchEnvironment`,
`HeadlessTurns`, `NarrativeWriter`, and `DedicatedThread`, `finish` and `wait_for` of `threads`. Called by
`daemon`, which composes and serves it, and by `race`, whose runners are sessions.
"""
