"""From files to blocks, labels and row order; every bad input is one sentence with the right exit code."""

from pathlib import Path

import numpy as np
import pytest

from colonnade.cli.inputs import gather
from colonnade.errors import ColonnadeError


def test_party_files_become_blocks(folder):
    inputs = gather(Path(folder.job), {})
    assert inputs.columns == {"bank": ["income", "age"], "shop": ["spend", "city=bonn", "city=ulm"]}
    assert inputs.job.labels == ("bank",)
    assert {name: block.shape for name, block in inputs.blocks.items()} == {
        "bank": (120, 2),
        "shop": (120, 3),
    }
    assert inputs.ids["bank"][:2] == ["r0", "r1"]
    assert inputs.nonzeros["bank"] == 240
    table = np.loadtxt(folder.path / "bank.csv", delimiter=",", skiprows=1, usecols=(1, 2, 3))
    np.testing.assert_array_equal(inputs.blocks["bank"], table[:, :2])
    np.testing.assert_array_equal(inputs.labels, table[:, 2])


def test_one_table_dealt_out_equals_the_parties_own_tables(folder):
    bank, shop = ((folder.path / f"{name}.csv").read_text().splitlines() for name in ("bank", "shop"))
    rows = [f"{left},{right.split(',', 1)[1]}" for left, right in zip(bank, shop, strict=True)]
    folder.write("all.csv", "\n".join(rows) + "\n")
    folder.write(
        "job.toml",
        '[job]\nbatch_size = 32\n[local]\ntable = "all.csv"\nid = "id"\nlabel = "late"\n'
        '[local.columns]\nbank = "income:age"\nshop = ["spend", "city"]\n[local.prepare]\none_hot = ["city"]\n',
    )
    together = gather(Path(folder.job), {})
    folder.write("job.toml", "[parties.bank]\n[parties.shop]\n")
    apart = gather(Path(folder.job), {})
    assert together.columns == apart.columns
    for name in ("bank", "shop"):
        np.testing.assert_array_equal(together.blocks[name], apart.blocks[name])
    np.testing.assert_array_equal(together.labels, apart.labels)


def test_a_libsvm_table_in_equal_runs(folder):
    folder.write("t.svm", "1 1:1 5:2\n-1 2:1 3:4\n")
    folder.write("job.toml", '[job]\nparties = 2\n[local]\ntable = "t.svm"\nlabel = true\n')
    inputs = gather(Path(folder.job), {})
    assert inputs.columns == {"p0": ["1", "2"], "p1": ["3", "4", "5"]}
    np.testing.assert_array_equal(inputs.blocks["p1"].toarray(), [[0, 0, 2], [4, 0, 0]])
    assert inputs.labels.tolist() == [1, -1]


def test_several_label_parties_hold_the_same_labels(folder):
    late = [line.rsplit(",", 1)[1] for line in (folder.path / "bank.csv").read_text().splitlines()]
    shop = (folder.path / "shop.csv").read_text().splitlines()
    folder.write("shop.csv", "\n".join(f"{row},{y}" for row, y in zip(shop, late, strict=True)) + "\n")
    folder.edit("shop.toml", "\n\n", '\nlabel = "late"\n\n')
    assert gather(Path(folder.job), {}).job.labels == ("bank",)
    assert gather(Path(folder.job), {"labels": "bank,shop"}).job.labels == ("bank", "shop")
    folder.edit("shop.csv", f"r0,{shop[1].split(',', 1)[1]},{late[1]}", f"r0,1,ulm,{1 - int(late[1])}")
    with pytest.raises(ColonnadeError, match="hold different labels in 1 rows, first in row 1"):
        gather(Path(folder.job), {"labels": "bank,shop"})


def test_options_override_the_file(folder):
    job = gather(Path(folder.job), {"step": "0.5", "method": "afsvrg"}).job
    assert (job.step, job.method, job.alpha) == (0.5, "afsvrg", 1e-2)


BAD = [
    ("job.toml", "alpha =", "alfa =", 2, "[job] unknown key 'alfa': did you mean 'alpha'?"),
    ("job.toml", "[parties.shop]", "", 2, "1 parties, and a job takes two"),
    ("job.toml", "[parties.shop]", "[parties.shopp]", 2, "shopp.toml: no such file"),
    ("job.toml", "[parties.shop]", '[parties."a/b"]', 2, "party name 'a/b'"),
    ("job.toml", "alpha", 'parties = ["bank", "mall"]\nalpha', 2, "'shop' is not among the job's parties"),
    ("job.toml", "alpha", 'labels = ["bnak"]\nalpha', 2, "labels names 'bnak'"),
    ("job.toml", "alpha", 'labels = ["shop"]\nalpha', 2, "labels names 'shop', which has no label column"),
    ("job.toml", "alpha", "step = 100\nalpha", 2, "step * alpha = 1 is not below 1"),
    ("job.toml", "32", "121", 2, "batch_size = 121 is larger than the 120 rows"),
    ("job.toml", "[parties.bank]", '[parties.bank]\ncolumns = ["age"]', 2, "'bank' would train on 'income'"),
    ("bank.toml", "table", "tabel", 2, "bank.toml: unknown key 'tabel': did you mean 'table'?"),
    ("bank.toml", '"bank"', '"bonk"', 2, "bank.toml: name = 'bonk'"),
    ("bank.toml", "bank.csv", "none.csv", 1, "none.csv: no such file"),
    ("bank.toml", '"late"', '"latte"', 1, "no label column 'latte': did you mean 'late'?"),
    ("bank.toml", 'label = "late"', "", 2, "no party's file names a label"),
    ("bank.toml", "label =", 'columns = ["incom"]\nlabel =', 1, "no column 'incom': did you mean 'income'?"),
    ("shop.toml", '"city"', '"citi"', 2, "one_hot names 'citi', which is no column: did you mean 'city'?"),
    ("shop.toml", 'one_hot = ["city"]', "", 1, "column 'city' is not numeric"),
    ("shop.csv", "r119,", "r118,", 1, "id 'r118' stands in 2 rows"),
    ("shop.csv", "\nr119", "\nr999", 1, "the ids differ, first in row 120 ('r119' against 'r999')"),
    ("shop.csv", "r1,", "r1,1,", 1, "shop.csv, line 3: 4 cells, the header has 3"),
]


@pytest.mark.parametrize("name, old, new, code, words", BAD)
@pytest.mark.parametrize("command", ["check", "simulate"])
def test_bad_input_is_one_sentence(folder, colonnade, command, name, old, new, code, words):
    folder.edit(name, old, new)
    found, _, complaint = colonnade(command, folder.job)
    assert found == code
    assert words in complaint
    assert complaint.startswith("colonnade: ")
    assert complaint.count("\n") == 1
    assert not (folder.path / "runs").exists()


def _rows(folder, name, change):
    header, *rows = (folder.path / name).read_text().splitlines()
    folder.write(name, "\n".join([header, *change(rows)]) + "\n")


@pytest.mark.parametrize(
    "name, change, words",
    [
        ("shop.csv", lambda rows: rows[:-1], "'bank' has 120 rows and 'shop' has 119"),
        ("shop.csv", lambda rows: rows[::-1], "the ids are in another order, first in row 1"),
        ("shop.csv", lambda rows: [], "no rows"),
        ("shop.csv", lambda rows: [f"{row.split(',')[0]},,ulm" for row in rows], "column 'spend' is empty"),
        ("shop.csv", lambda rows: [f"{row.split(',')[0]},1,ulm" for row in rows], "every column is constant"),
        ("bank.csv", lambda rows: [row[:-1] + "1" for row in rows], "class"),
        ("bank.csv", lambda rows: [f"{row[:-1]}{i % 3}" for i, row in enumerate(rows)], "multinomial"),
        (
            "bank.csv",
            lambda rows: [f"r{i},nan,inf,{i % 2}" for i in range(120)],
            "'income' is empty in every row",
        ),
        (
            "bank.csv",
            lambda rows: [f"r{i},{i},inf,{i % 2}" for i in range(120)],
            "'age' has 120 infinite cells",
        ),
        (
            "bank.csv",
            lambda rows: [f"r{i},{i or 'NaN'},1,{i % 2}" for i in range(120)],
            "'income' has 1 empty or NaN",
        ),
    ],
)
@pytest.mark.parametrize("command", ["check", "simulate"])
def test_bad_tables_are_one_sentence(folder, colonnade, command, name, change, words):
    _rows(folder, name, change)
    found, _, complaint = colonnade(command, folder.job)
    assert (found, complaint.count("\n")) == (1, 1)
    assert words in complaint


@pytest.mark.parametrize(
    "local, words",
    [
        ('[local.columns]\nbank = ["x"]\nshop = ["x"]', "gives 'x' to 'bank' and 'shop'"),
        ('[local.columns]\nbank = ["x"]\nshop = ["q"]', "no column 'q'"),
        ('[local.columns]\nbank = ["x"]', "1 parties, and a job takes two"),
        (
            '[local.columns]\nbank = ["x"]\nshop = ["z"]\n[parties.bank]\n[parties.mall]',
            "names 'shop', which is no party",
        ),
        ('[local.columns]\nbank = ["x"]\n[parties.bank]\n[parties.mall]', "has no columns for 'mall'"),
        ("[parties.a]\n[parties.b]\n[parties.c]", "2 columns for 3 parties"),
        ('[local.prepare]\ndrop = ["q"]\n[parties.a]\n[parties.b]', "drop names 'q', which is no column"),
    ],
)
def test_bad_local_tables_are_one_sentence(folder, colonnade, local, words):
    folder.write("t.csv", "x,z,y\n1,2,0\n2,1,1\n")
    folder.write("job.toml", f'[job]\nbatch_size = 2\n[local]\ntable = "t.csv"\nlabel = "y"\n{local}\n')
    code, _, complaint = colonnade("check", folder.job)
    assert code in (1, 2)
    assert words in complaint
