"""Every session at work on this machine: opened, created, adopted, recovered after a crash, stopped.

Public names: SessionLifecycle (the entry point), SessionRegistry, SessionOpener, ActiveSession,
OpenRequest, ChangeNotifier. Called by `operations`, `daemon` and `race`.
"""
