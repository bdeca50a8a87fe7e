"""What work has cost: usage of native transcripts and journals of ours, put together and summed up."""
