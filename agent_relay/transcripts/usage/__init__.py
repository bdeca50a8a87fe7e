"""Read usage from the agents' own records: tokens, turns and changed lines as dated records.

One module for each agent, each imported only when there is something of that agent to read (`readers`);
`records` defines what they return, and `answer_columns` packs many answers. What a format's records are
called is in the room above (`_claude_format` and its like). Public names: `USAGE_READERS`, `UsageReader`,
`UsageTables`, `UsageRecord`, `AnswerUsage`, `ReaderState`, `Columns`. Called by the usage room, for hundreds
of megabytes at a time.
"""
