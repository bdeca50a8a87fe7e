"""Search the turns of a session's earlier agents for the answer to a question.

`turns` builds turns from facts, or from what a packet quotes if a transcript is gone (`build_turns`,
`add_packet`); `search` ranks them and excerpts the best (`Search`). Only the terms of the question are
ever counted, so that a transcript of many megabytes needs no index. Called by `agent-relay recall`. Pure;
results contain secrets unless the caller's `clean` removes them.
"""
