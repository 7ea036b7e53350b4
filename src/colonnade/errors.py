"""The errors that users meet. Each says what is wrong, with the value, and what to do."""

from __future__ import annotations


class ColonnadeError(Exception):
    """Base of all errors that are not bugs; commands print its one sentence and exit."""


class ConfigurationError(ColonnadeError, ValueError):
    """A job, world or option that makes no sense: exit code 2."""


class DataError(ColonnadeError, ValueError):
    """A table, block or label that cannot be trained on: exit code 1."""


class RefusedError(ColonnadeError):
    """A party refuses to go on, for its own safety or the result's."""


class OverflowRefusedError(RefusedError):
    """A share does not fit the fixed-point words."""


class RemoteProtocolError(ColonnadeError):
    """A peer broke the protocol: only its link ends with this, naming peer, state and message."""


class LocalProtocolError(ColonnadeError):
    """We would break the protocol: a bug of this package."""


def nearest(name: str, known: list[str] | tuple[str, ...]) -> str:
    """A hint for an unknown name: the nearest known one, or the list."""
    import difflib

    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
