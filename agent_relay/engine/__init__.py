"""Sessions at work in the daemon: legs started and watched, handoffs performed, packets delivered.

A session is decided upon in `session` (pure); here its effects are performed and what came of them is fed
back as inputs. `sessions` finds, opens and keeps the sessions; each has a `Host` (takes inputs in turn,
journals what follows) and an `EffectRunner`. `legs` watches the agents' processes, `delivery` types into
them, `publishing` writes packets, `operations` answers requests. Public names: SessionLifecycle,
SessionRegistry, Host, EffectRunner, LegMonitor, Services, OpenRequest. Called by `daemon`, which composes
and serves it, and by `race`, whose runners are sessions.
"""
