"""One reader for each native transcript format: records in, facts out."""
