"""Search the turns of a session's earlier agents for a question.

`turns` makes turns of facts, or of what a packet holds where a transcript is gone (`build_turns`,
`add_packet`); `search` ranks them and excerpts the best (`Search`). The words known in several languages are
data (`_words`); only a question's terms are ever counted, so that a transcript of many megabytes takes no
index. Called by `agent-relay recall`. Pure; what it returns still holds secrets unless the caller's `clean`
removes them.
"""
