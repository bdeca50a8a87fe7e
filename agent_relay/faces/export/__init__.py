"""`agent-relay export`: figures for Prometheus and OpenTelemetry, and events for a webhook.

Labels are few and bounded, and nothing that anybody wrote leaves the machine (`outbound_filter`). Public:
`command.run` only, which the table of commands names. The libraries of `prometheus` and `otlp` are an
extra: both modules are imported where they are wanted.
"""
