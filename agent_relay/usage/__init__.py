"""What agents have used, in tokens, money and time, from journals and the agents' own records.

Its public names are `gather_metrics` (what a question is about), `sum_rows` (rows by session, leg, agent,
model or day), `PriceList`, `BudgetCounter` (how much of each budget is used), `find_report` and
`keep_report` (finished reports), `GROUPINGS` and the renderers of `number_format`. The command `metrics`,
the exporter, the watch page and races ask it; the engine counts budgets with it. `scan/` reads the agents'
files and remembers what it has read. Which module is loaded when is part of the design: the files are found
and read by other processes while the rest is imported.
"""
