"""Commands about relay on this machine: `init`, `doctor` and `daemon`.

Loaded by name from the table of commands; nothing else imports them. `doctor_report` and `program_versions`
are parts of `doctor`.
"""
