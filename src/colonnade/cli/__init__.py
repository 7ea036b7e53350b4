"""The command line. Nothing heavy is imported before a command runs."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Sequence
from importlib import import_module

from colonnade.errors import ColonnadeError, ConfigurationError

FAILED, MISUSE, INTERRUPTED = 1, 2, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. 0: done, 1: the run failed, 2: misuse, 130: interrupted; never a traceback."""
    _end_gently_when_told()
    try:
        from colonnade.cli.arguments import parse

        command = parse(sys.argv[1:] if argv is None else argv)
        run = import_module(f"colonnade.cli.{ROOMS[command.name]}").run
        return int(run(command))
    except SystemExit as end:  # --help and --version
        return int(end.code or 0)
    except KeyboardInterrupt:
        return _say("interrupted", INTERRUPTED)
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - nobody reads on: keep the exit quiet
        return FAILED
    except ConfigurationError as error:
        return _say(str(error), MISUSE)
    except ColonnadeError as error:
        return _say(str(error), FAILED)
    except Exception as error:
        if os.environ.get("COLONNADE_DEBUG"):
            raise
        return _say(f"a bug: {type(error).__name__}: {error} (COLONNADE_DEBUG=1 shows where)", FAILED)


def _end_gently_when_told() -> None:
    """What a scheduler sends before it kills is heard as Ctrl-C: the run ends and is kept."""
    ours = threading.current_thread() is threading.main_thread()
    heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours and heard and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))


ROOMS = {"train": "training", "simulate": "training", "check": "checking", "report": "reporting"}
"""Which file runs a command."""


def _say(sentence: str, code: int) -> int:
    print("colonnade: " + " ".join(sentence.split()), file=sys.stderr)
    return code
