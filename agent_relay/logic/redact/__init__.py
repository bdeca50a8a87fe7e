"""Finds and removes secrets, in plain text and in packets, and leaves ordinary code as it is.

`text`, `packet` and `facts` remove them, `known` and `allow` gather what is or is not one, `rule` says what a
rule is; the other modules hold the rules.
"""
