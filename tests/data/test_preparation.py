"""`[prepare]` against scikit-learn's scaler and encoder, and its refusals."""

import msgspec
import numpy as np
import pytest
from scipy.sparse import csr_matrix, issparse
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from colonnade.data.preparation import Prepare, apply, fit
from colonnade.data.sources import read
from colonnade.data.tables import Table, Texts
from colonnade.errors import ConfigurationError, DataError

ROWS = 60


@pytest.fixture
def table():
    rng = np.random.default_rng(5)
    return Table(
        source="airline.csv",
        rows=ROWS,
        names=("distance", "origin", "month", "constant"),
        cells={
            "distance": rng.normal(700, 300, ROWS),
            "origin": Texts(rng.integers(0, 3, ROWS).astype(np.int32), ("LGA", "JFK", "EWR")),
            "month": rng.integers(1, 13, ROWS).astype(float),
            "constant": np.full(ROWS, 0.1),
        },
    )


def prepared(table, **options):
    """Through plain data, as a model file carries it."""
    recipe = msgspec.json.decode(msgspec.json.encode(fit(table, Prepare(**options))))
    return apply(recipe, table)


def test_standardised_and_one_hot_columns_equal_scikit_learns(table):
    block = prepared(table, standardise=("distance", "constant"), one_hot=("origin", "month"), layout="dense")
    origin = np.array(table.cells["origin"].values)[table.cells["origin"].codes]
    expected = np.hstack(
        [
            StandardScaler().fit_transform(table.cells["distance"][:, None]),
            OneHotEncoder(sparse_output=False).fit_transform(origin[:, None]),
            OneHotEncoder(sparse_output=False).fit_transform(table.cells["month"][:, None]),
            np.zeros((ROWS, 1)),
        ]
    )
    np.testing.assert_allclose(block.values, expected, atol=1e-12)
    assert block.names[:4] == ("distance", "origin=EWR", "origin=JFK", "origin=LGA")
    months = [int(name.removeprefix("month=")) for name in block.names if name.startswith("month=")]
    assert months == sorted(months)


def test_auto_splits_text_and_standardise_true_takes_all_numbers(table):
    block = prepared(table, standardise=True, one_hot="auto")
    assert block.names == ("distance", "origin=EWR", "origin=JFK", "origin=LGA", "month", "constant")
    np.testing.assert_allclose(block.values[:, 4].std(), 1)


def test_sparse_and_dense_layouts_hold_the_same_numbers(table):
    options = {"one_hot": ("origin", "month"), "drop": ("constant",), "scale_rows": "mean"}
    dense, sparse = (prepared(table, layout=layout, **options) for layout in ("dense", "sparse"))
    assert issparse(sparse.values)
    assert sparse.names == dense.names
    np.testing.assert_allclose(sparse.values.toarray(), dense.values, rtol=1e-15)


def test_auto_layout_is_sparse_when_mostly_zero():
    codes = np.arange(ROWS, dtype=np.int32)
    table = Table("t", ROWS, ("k",), {"k": Texts(codes, tuple(map(str, codes)))})
    assert issparse(prepared(table, one_hot="auto").values)


@pytest.mark.parametrize("missing, fill", [("mean", 2.0), ("zero", 0.0)])
def test_missing_numbers_are_filled_and_marked_and_text_gets_a_category(missing, fill):
    cells = {
        "age": np.array([1.0, np.nan, 3.0]),
        "maker": Texts(np.array([0, -1, 1], dtype=np.int32), ("BOEING", "AIRBUS")),
        "seats": np.array([4.0, 5.0, 6.0]),
    }
    block = prepared(Table("registry.csv", 3, tuple(cells), cells), missing=missing, one_hot="auto")
    assert block.names == ("age", "age=(missing)", "maker=AIRBUS", "maker=BOEING", "maker=(missing)", "seats")
    expected = [[1, 0, 0, 1, 0, 4], [fill, 1, 0, 0, 1, 5], [3, 0, 1, 0, 0, 6]]
    np.testing.assert_array_equal(block.values, expected)


def test_scaled_rows(table):
    options = {"one_hot": "auto", "drop": ("constant",)}
    unit = prepared(table, scale_rows="unit", **options).values
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1)
    mean = prepared(table, scale_rows="mean", **options).values
    np.testing.assert_allclose((mean**2).sum(axis=1).mean(), 1)


def test_new_rows_are_prepared_as_the_old_ones_were(table):
    recipe = fit(table, Prepare(standardise=True, one_hot=("origin",)))
    new = Table(
        "new.csv",
        2,
        ("month", "constant", "origin", "distance"),
        {
            "month": np.array([1.0, np.nan]),
            "constant": np.zeros(2),
            "origin": Texts(np.array([0, 1], dtype=np.int32), ("JFK", "SFO")),
            "distance": np.array([table.cells["distance"].mean()] * 2),
        },
    )
    block = apply(recipe, new)
    assert block.names == apply(recipe, table).names
    np.testing.assert_allclose(block.values[:, 0], 0, atol=1e-12)
    np.testing.assert_array_equal(block.values[:, 1:4], [[0, 1, 0], [0, 0, 0]])


def test_libsvm_tables_keep_their_zeros(tmp_path):
    path = tmp_path / "t.svm"
    path.write_text("1 1:3 2:4\n-1 5:2\n1\n")
    block = prepared(read(path), drop=("2",), scale_rows="unit")
    assert block.names == ("1", "3", "4", "5")
    np.testing.assert_array_equal(block.values.toarray(), [[1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    with pytest.raises(ConfigurationError, match="standardise would fill up a libsvm table"):
        fit(read(path), Prepare(standardise=True))


@pytest.mark.parametrize(
    "options, error, words",
    [
        ({}, DataError, "column 'origin' is not numeric (for example 'LGA'): add it to one_hot"),
        ({"one_hot": ("orgin",)}, ConfigurationError, "one_hot names 'orgin', which is no column: did you"),
        ({"drop": ("x",)}, ConfigurationError, "drop names 'x'"),
        (
            {"one_hot": ("month",), "standardise": ("month",)},
            ConfigurationError,
            "'month' is in one_hot and in",
        ),
        ({"drop": ("distance", "origin", "month", "constant")}, DataError, "no column is left"),
    ],
)
def test_refusals(table, options, error, words):
    with pytest.raises(error) as caught:
        fit(table, Prepare(**options))
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "column, options, words",
    [
        ([1, np.nan, np.nan], {}, "column 'x' has 2 empty or NaN cells: set missing"),
        ([1, np.nan, 2], {"missing": "category"}, "column 'x' has 1 empty or NaN cells"),
        ([1, np.inf, 2], {"missing": "mean"}, "column 'x' has 1 infinite cells"),
        ([1, -np.inf, 2], {"one_hot": ("x",)}, "column 'x' has 1 infinite cells"),
        ([1, np.nan, 2], {"one_hot": ("x",)}, "column 'x' has 1 empty cells: set missing = \"category\""),
        ([np.nan] * 3, {"missing": "mean"}, "column 'x' is empty in every row"),
        ([np.nan] * 3, {"missing": "mean", "one_hot": ("x",)}, "column 'x' is empty in every row"),
    ],
)
def test_cells_that_cannot_be_trained_on(column, options, words):
    with pytest.raises(DataError) as caught:
        fit(Table("t.csv", 3, ("x",), {"x": np.array(column, dtype=float)}), Prepare(**options))
    assert words in str(caught.value)


def test_infinite_numbers_in_a_sparse_table():
    matrix = csr_matrix(np.array([[1.0, np.inf], [np.nan, np.inf]]))
    with pytest.raises(DataError, match="column '2' has 2 NaN or infinite cells"):
        prepared(Table("t.svm", 2, ("1", "2"), matrix))


def test_a_column_that_became_text_is_refused(table):
    recipe = fit(table, Prepare(one_hot="auto"))
    cells = table.cells | {"month": table.cells["origin"]}
    with pytest.raises(DataError, match="'month' is not numeric"):
        apply(recipe, Table("new.csv", ROWS, table.names, cells))
