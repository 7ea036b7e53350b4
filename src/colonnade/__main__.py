"""`python -m colonnade`."""

import sys

from colonnade.cli import main

sys.exit(main())
