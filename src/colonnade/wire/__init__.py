"""Pure: bytes to messages and back, and when which message may be said."""
