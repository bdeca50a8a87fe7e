"""Every session at work on this machine: opened, created, adopted, recovered after a crash, stopped.

Public names: SessionRegistry, which keeps a Host for each; the functions of `lifecycle` and `opener` on it;
OpenRequest, ChangeNotifier. Called by `operations`, `daemon` and `race`.
"""
