"""docs/wire.md says what the code does."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_is_up_to_date():
    command = [sys.executable, str(ROOT / "scripts" / "docs_wire.py"), "--check"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_a_page_out_of_step_is_noticed(tmp_path):
    """The generator beside a page that somebody edited by hand."""
    for folder in ("scripts", "docs"):
        (tmp_path / folder).mkdir()
    script = tmp_path / "scripts" / "docs_wire.py"
    script.write_text((ROOT / "scripts" / "docs_wire.py").read_text())
    page = tmp_path / "docs" / "wire.md"
    page.write_text((ROOT / "docs" / "wire.md").read_text() + "by hand\n")
    run = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stderr == "docs/wire.md is not what the code says: run scripts/docs-wire\n"
