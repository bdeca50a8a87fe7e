"""Structured evidence as records: files an agent appends to, and event streams it serves."""
