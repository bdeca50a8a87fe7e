"""What the agents' own records say about usage: tokens, turns and changed lines as dated marks."""
