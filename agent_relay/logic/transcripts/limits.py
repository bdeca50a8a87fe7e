"""What of a transcript is not even looked at."""

LINE_BYTES = 8 << 20
"""Longer lines hold pasted images or dumped files, not facts; decoding them would only cost memory."""
