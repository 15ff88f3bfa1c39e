"""What a run tells: events while it goes on, the terminal, the JSON report, the review dialogue."""
