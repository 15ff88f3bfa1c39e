"""From failures to tasks: what is to be repaired, and where."""
