"""Candidates that a language model writes, through any OpenAI-compatible chat endpoint."""
