"""From pytest's objects to `Failure`: what was seen of one failing node, as plain values."""
