"""Model-free repair: typed edits by span on suspicious lines, ordered, without duplicates, enumerated lazily.

Read `enumerate.py` first; `registry.py` says what an operator is, `site.py` what it sees and may do.
"""
