"""ctxproxy: an OpenAI-compatible proxy that keeps every conversation inside the model's window."""

__version__ = "0.1.0"
