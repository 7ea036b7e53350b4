"""docs/job-file.md lists every option as it is declared."""

from pathlib import Path

import pytest

from colonnade.cli.jobfile import Local, PartyFile, PublicParty
from colonnade.cli.settings import options
from colonnade.data.preparation import Prepare
from colonnade.job import Job

PAGE = Path(__file__).parents[2] / "docs" / "job-file.md"


def row(option):
    """An option as a row of the page's tables."""
    if option.required:
        left_out = "required"
    elif option.default is None or option.default in ((), {}) or isinstance(option.default, Prepare):
        left_out = "–"
    else:
        left_out = str(option.default).lower() if option.default in (True, False) else str(option.default)
    cells = [f"`{option.name}`", option.expected.replace("'", "`"), left_out, option.help]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


@pytest.mark.parametrize(
    "struct", [Job, Local, PartyFile, PublicParty, Prepare], ids=lambda struct: struct.__name__
)
def test_the_page_lists_every_option(struct):
    page = PAGE.read_text()
    for option in options(struct).values():
        assert row(option) in page, f"put this row in docs/job-file.md: {row(option)}"
