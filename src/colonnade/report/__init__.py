"""What happened: the trace, the report and its page."""
