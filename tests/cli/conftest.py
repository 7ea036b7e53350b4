"""Two parties' files in a folder, and a way to run commands on them in this process."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from colonnade.cli import main

ROWS = 120


@dataclass
class Folder:
    """A job with its party files, and edits to them."""

    path: Path

    def write(self, name, text):
        (self.path / name).write_text(text)

    def edit(self, name, old, new):
        text = (self.path / name).read_text()
        assert old in text
        self.write(name, text.replace(old, new, 1))

    @property
    def job(self):
        return str(self.path / "job.toml")


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(7)
    a, b = rng.normal(size=(ROWS, 2)), rng.normal(size=(ROWS, 1))
    city = rng.choice(["ulm", "bonn"], ROWS)
    late = (a.sum(axis=1) + b[:, 0] + rng.normal(size=ROWS) > 0).astype(int)
    bank = [f"r{i},{a[i, 0]},{a[i, 1]},{late[i]}" for i in range(ROWS)]
    shop = [f"r{i},{b[i, 0]},{city[i]}" for i in range(ROWS)]
    made = Folder(tmp_path)
    made.write("bank.csv", "\n".join(["id,income,age,late", *bank, ""]))
    made.write("shop.csv", "\n".join(["id,spend,city", *shop, ""]))
    made.write("bank.toml", 'name = "bank"\ntable = "bank.csv"\nid = "id"\nlabel = "late"\n')
    made.write("shop.toml", 'table = "shop.csv"\nid = "id"\n\n[prepare]\none_hot = ["city"]\n')
    made.write("job.toml", "[job]\nalpha = 1e-2\nbatch_size = 32\n\n[parties.bank]\n[parties.shop]\n")
    return made


@pytest.fixture
def colonnade(capsys):
    """Run a command: exit code, what it printed, and what it complained of."""

    def run(*arguments):
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run
