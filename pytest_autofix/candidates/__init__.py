"""Where candidates come from: the model-free search, a model, memory."""
