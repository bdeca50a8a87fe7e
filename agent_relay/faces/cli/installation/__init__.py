"""Commands about relay on this machine: `init`, `doctor` and `daemon`.

Loaded by name from the table of commands; nothing else imports them. `_doctor_report` and
`_program_versions` are parts of `doctor`.
"""
