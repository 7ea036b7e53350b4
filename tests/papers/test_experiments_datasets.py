"""The experiments' tables: the optima and shapes the data page states, and the generator's stated laws."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from experiments import datasets, generator  # noqa: E402
from experiments.datasets import give_me_some_credit, tables  # noqa: E402

from colonnade.core.optimum import pooled_optimum  # noqa: E402


@pytest.fixture(autouse=True)
def data_where_it_is(request, monkeypatch):
    if "colonnade_data" in request.fixturenames:
        monkeypatch.setenv("COLONNADE_DATA", str(request.getfixturevalue("colonnade_data")))


def optimum(X, y, loss):
    """f* as the data page means it: λ = 1e-4, no intercept."""
    codes = np.unique(y, return_inverse=True)[1] if loss == "multinomial" else y
    return pooled_optimum(X, codes, loss, 1e-4)[2]


def reference(folder, name):
    return json.loads((folder / "reference.json").read_text())[name]


@pytest.mark.parametrize("scaling, optimal", [("mean", 0.43992663), ("none", 0.43427092)])
def test_credit91_has_its_known_optimum(colonnade_data, scaling, optimal):
    X, y = datasets.get("credit91").read(True)
    assert X.shape == (30_000, 91)
    assert optimum(tables.SCALINGS[scaling](X), y, "logistic") == pytest.approx(optimal, abs=2e-8)


def test_credit91_standardised_has_its_known_optimum(colonnade_data):
    X, y = datasets.get("credit91").read(True)
    assert optimum(tables.standardise(X), y, "logistic") == pytest.approx(0.57077851, abs=2e-8)


@pytest.mark.parametrize("name", ["reuters_binary", "give_me_some_credit", "keggundirected"])
def test_tables_have_the_reference_optimum(colonnade_data, name):
    known, dataset = reference(colonnade_data, name), datasets.get(name)
    X, y = dataset.read(True)
    train, test = datasets.held_out(len(y))
    assert (len(train), len(test), X.shape[1]) == (known["n_train"], known["n_test"], known["d"])
    if known["standardised"]:
        deviation = X[train].std(0)
        X = (X - X[train].mean(0)) / np.where(deviation > 0, deviation, 1)
    if dataset.loss == "squared":
        y = (y - y[train].mean()) / y[train].std()
    assert optimum(X[train], y[train], dataset.loss) == pytest.approx(known["f_star"], abs=1e-6)


@pytest.mark.parametrize(
    "name, rows, columns, per_row",
    [
        ("news20_multiclass", 19_997, 112_480, 141),
        ("reuters_multiclass", 9_000, 26_132, 62),
        ("url_phishtank", 50_233, 658_554, 46),
        ("imdb_rating", 8_000, 46_157, 140),
    ],
)
def test_sparse_tables_have_the_stated_shape(colonnade_data, name, rows, columns, per_row):
    X, y = datasets.get(name).read(True)
    assert X.shape == (rows, columns)
    assert len(y) == rows
    assert X.nnz / rows == pytest.approx(per_row, abs=1)
    assert sp.issparse(X)


def test_complete_rows_of_give_me_some_credit(colonnade_data):
    table = give_me_some_credit.complete_rows()
    labels = table[give_me_some_credit.LABEL]
    assert len(table) == 11
    assert (len(labels), labels.sum()) == (120_269, 8_357)


def test_a_table_is_cut_scaled_and_kept(colonnade_data, tmp_path, monkeypatch):
    monkeypatch.setattr(datasets, "CACHE", tmp_path)
    datasets.loaded.cache_clear()
    X, y = datasets.loaded("keggundirected")
    again = np.load(next(tmp_path.glob("*.npz")))["dense"]
    datasets.loaded.cache_clear()
    assert X.shape == (20_000, 27)
    assert tables.squared_norms(X).mean() == pytest.approx(1)
    assert (y.mean(), y.std()) == pytest.approx((0, 1))
    assert np.array_equal(X, again)


def test_every_data_set_says_what_it_stands_for():
    found = [datasets.get(name) for name in datasets.NAMES]
    assert [dataset.name for dataset in found] == list(datasets.NAMES)
    assert {dataset.parties for dataset in found} == {4, 8, 16}
    assert len({dataset.stands_for for dataset in found}) == len(found)


def test_an_unknown_data_set_is_named():
    with pytest.raises(SystemExit, match="no data set 'credit'; known: credit91"):
        datasets.get("credit")


@pytest.mark.parametrize("sparse", [True, False])
def test_blocks_together_are_the_table(sparse):
    X = np.random.default_rng(0).random((20, 11)) * (np.random.default_rng(1).random((20, 11)) < 0.5)
    blocks = datasets.split_columns(sp.csr_array(X) if sparse else X, 4)
    dense = np.hstack([block.toarray() if sparse else block for block in blocks])
    assert sorted(block.shape[1] for block in blocks) == [2, 3, 3, 3]
    assert np.array_equal(np.sort(dense, axis=1), np.sort(X, axis=1))


def test_rows_of_unit_length():
    X = np.random.default_rng(0).random((6, 5))
    for table in (X, sp.csr_array(X)):
        assert tables.squared_norms(tables.SCALINGS["rows"](table)) == pytest.approx(np.ones(6))


SHAPE = generator.Shape(rows=4_000, columns=30_000, mean=40)


def test_generated_rows_have_the_stated_length():
    X, y = generator.sparse(SHAPE, seed=3)
    lengths = np.diff(X.indptr)
    assert X.has_canonical_format
    assert lengths.mean() == pytest.approx(40, rel=0.05)
    assert np.log(lengths).std() == pytest.approx(0.8, rel=0.05)
    assert tables.squared_norms(X) == pytest.approx(np.ones(4_000))
    assert 0.4 < (y > 0).mean() < 0.6
    assert set(np.unique(y)) == {-1.0, 1.0}


def test_generated_columns_are_distinct_and_follow_zipf():
    rng = np.random.default_rng(0)
    lengths = np.full(3_000, 50)
    chosen = generator.distinct_columns(rng, lengths, 1_000).reshape(3_000, 50)
    assert (np.diff(np.sort(chosen, axis=1), axis=1) > 0).all()
    drawn = np.bincount(generator.zipf(rng, 1_000_000, 1_000), minlength=1_000)
    expected = 1 / (np.arange(1_000) + 10)
    assert drawn[:50] / 1e6 == pytest.approx(expected[:50] / expected.sum(), rel=0.05)


def test_the_seed_decides():
    first, again, other = (generator.sparse(SHAPE, rows=200, seed=seed)[0] for seed in (1, 1, 2))
    assert (first != again).nnz == 0
    assert (first != other).nnz > 0


def test_generated_rows_do_not_depend_on_how_many(monkeypatch):
    monkeypatch.setattr(generator, "CHUNK", 4_000)
    few, many = (generator.sparse(SHAPE, rows=rows, seed=1)[0] for rows in (100, 300))
    assert (few != many[:100]).nnz == 0


def test_published_shapes_of_ones_and_targets():
    X, _ = generator.sparse("url", rows=50, seed=0)
    assert X.shape == (50, 3_231_961)
    assert set(X.data) == {1.0}
    _, target = generator.sparse("e2006", rows=50, seed=0)
    assert len(np.unique(target)) == 50


def test_dense_shapes():
    X, y = generator.epsilon(rows=500, columns=200)
    assert np.linalg.norm(X, axis=1) == pytest.approx(np.ones(500))
    assert len(y) == 500
    X, y = generator.year_prediction(rows=40_000)
    assert np.corrcoef(X[:, 3], X[:, 5])[0, 1] == pytest.approx(0.49, abs=0.03)
    w, *_ = np.linalg.lstsq(X, y, rcond=None)
    assert 1 - np.var(y - X @ w) / np.var(y) == pytest.approx(0.24, abs=0.02)
