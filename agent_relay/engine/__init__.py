"""Sessions at work in the daemon: legs are started and monitored, handoffs performed, packets delivered.

`session` (pure) decides what a session does; this room performs the effects and feeds their results back as
inputs. `sessions` finds, opens and keeps the sessions; each has a `Host` (takes inputs in turn, journals
the resulting events) and an `EffectRunner`. `legs` monitors the agents' processes, `delivery` types into
them, `publishing` writes packets, `operations` answers requests. Public names: SessionLifecycle,
SessionRegistry, Host, EffectRunner, LegMonitor, Services, OpenRequest. Called by `daemon`, which composes
and serves it, and by `race`, whose runners are sessions.
"""
