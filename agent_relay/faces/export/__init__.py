"""Run `agent-relay export`: figures for Prometheus and OpenTelemetry, and events for a webhook.

Labels are few and bounded, and nothing that anybody wrote leaves the machine (`_figures` filters it). Public:
`command.export` only, which the table of commands names. The libraries of `_prometheus` and `_otlp` are an
extra: both modules are imported only when needed.
"""
