"""Texts and trees: find a definition, splice, diff, and say what may be edited."""
