"""Whether a candidate may be accepted: named checks, each with evidence. No other way to accept exists."""
