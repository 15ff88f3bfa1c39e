"""The LangGraph loop: recall, generate, execute, reflect, verify. One graph run for each task."""
