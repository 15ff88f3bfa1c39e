"""Where untrusted code runs. `protocol` says what a sandbox promises; one module per back end.

`runner.py`, `confine.py` and `events.py` run INSIDE and import the standard library and pytest only.
"""
