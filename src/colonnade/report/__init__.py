"""What happened, for people: a few lines for a terminal (`text`), one self-contained page (`page.write`)."""

from colonnade.report.summary import text

__all__ = ["text"]
