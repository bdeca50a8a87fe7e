"""Count what agents have used, in tokens, money and time, from journals and the agents' own records.

Its public names are `gather_metrics` (collect the work a question is about), `sum_rows` (rows by session,
leg, agent, model or day), `PriceList`, `BudgetCounter` (how much of each budget is used), `timeline_usage`
(what each leg used), `GROUPINGS` and the renderers of `table_format`. The command `metrics`, the exporter,
`watch`, `handoff history` and races use it; the engine counts budgets with it. `native_usage` decides which
of the agents' files are read, `record_files` finds them and reads what is new, and `index` remembers it.
"""
