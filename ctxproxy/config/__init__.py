"""Configuration: what can be set (`schema`), where it comes from (`load`), how it is shown (`explain`), how it is read again (`reload`)."""
