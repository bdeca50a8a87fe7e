"""Sessions at work: the host of a session, its handoffs, their recovery."""
