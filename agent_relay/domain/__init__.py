"""The words of the problem as types: no behaviour that reaches outside memory."""
