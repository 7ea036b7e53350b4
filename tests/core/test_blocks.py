"""Every product of every kind of block against the plain matrix."""

import threading

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

from colonnade.core import blocks, kernels
from colonnade.core.blocks import DenseBlock, SparseBlock, as_block, check_block, count, split
from colonnade.errors import DataError

KINDS = ("dense", "dense32", "sparse", "sparse32")


def made(kind, X):
    X = X.astype(np.float32) if kind.endswith("32") else X
    return as_block(sp.csr_array(X)) if kind.startswith("sparse") else as_block(X)


def matrix(seed, n, d):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.4)
    return X.astype(np.float32).astype(np.float64)  # float32 kinds hold the very same numbers


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [(), (3,)])
@given(seed=st.integers(0, 99), n=st.integers(1, 40), d=st.integers(1, 9), data=st.data())
@settings(max_examples=25, deadline=None)
def test_products_equal_the_plain_matrix(kind, classes, seed, n, d, data):
    X = matrix(seed, n, d)
    block = made(kind, X)
    rng = np.random.default_rng(seed)
    numbers = st.lists(st.integers(0, n - 1), max_size=2 * n)
    batch = np.array(data.draw(numbers), data.draw(st.sampled_from([np.uint32, np.int64])))
    start = data.draw(st.integers(0, n))
    for rows in (batch, slice(start, data.draw(st.integers(start, n))), slice(0, n)):
        w = rng.standard_normal((d, *classes))
        r = rng.standard_normal((count(rows), *classes))
        onto = rng.standard_normal((d, *classes))
        expected = onto - 0.7 * X[rows].T @ r
        block.add_adjoint(rows, r, onto, -0.7)
        np.testing.assert_allclose(block.product(rows, w), X[rows] @ w, atol=1e-12)
        np.testing.assert_allclose(onto, expected, atol=1e-12)
        assert block.nonzeros(rows) == (
            X[rows].size if kind.startswith("dense") else np.count_nonzero(X[rows])
        )
    np.testing.assert_allclose(block.row_norms(), (X**2).sum(axis=1), atol=1e-12)
    assert (block.rows, block.columns) == X.shape


@pytest.mark.parametrize("kind", ["dense", "dense32"])
def test_large_batches_are_multiplied_in_parts_of_bounded_size(kind, monkeypatch):
    monkeypatch.setattr(blocks, "PIECE", 8 * 5 * 7)
    X = matrix(1, 100, 5)
    block = made(kind, X)
    rows = np.random.default_rng(0).integers(0, 100, 61)
    w, r, onto = np.arange(5.0), np.arange(61.0), np.zeros(5)
    np.testing.assert_allclose(block.product(rows, w), X[rows] @ w, atol=1e-12)
    np.testing.assert_allclose(block.product(slice(3, 100), w), X[3:] @ w, atol=1e-12)
    block.add_adjoint(rows, r, onto)
    np.testing.assert_allclose(onto, X[rows].T @ r, atol=1e-10)
    np.testing.assert_allclose(block.row_norms(), (X**2).sum(axis=1), atol=1e-12)
    assert all(buffer.nbytes <= blocks.PIECE for buffer in block._scratch._buffers.values())


def test_dense_values_are_an_aligned_copy_that_keeps_its_precision():
    X = np.asfortranarray(matrix(0, 30, 4))
    block = as_block(X)
    assert block.values.flags.c_contiguous
    assert block.values.ctypes.data % 64 == 0
    X[:] = 0
    assert block.values.any()
    assert as_block(X.astype(np.float32)).values.dtype == np.float32
    assert as_block(X.astype(np.int8)).values.dtype == np.float64


def test_two_threads_do_not_share_a_buffer():
    X = matrix(3, 500, 20)
    block, w = as_block(X), np.arange(20.0)
    wrong = []

    def multiply(seed):
        rng = np.random.default_rng(seed)
        for _ in range(300):
            rows = rng.integers(0, 500, 200)
            if not np.allclose(block.product(rows, w), X[rows] @ w):
                wrong.append(seed)

    threads = [threading.Thread(target=multiply, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_rows_and_slopes_may_be_the_bytes_of_a_message():
    X = matrix(2, 20, 6)
    rows = np.frombuffer(np.arange(5, dtype=np.uint32).tobytes(), np.uint32)
    r = np.frombuffer(np.arange(5.0).tobytes())
    w = np.frombuffer(np.arange(6.0).tobytes())
    for kind in KINDS:
        block, onto = made(kind, X), np.zeros(6)
        block.add_adjoint(rows, r, onto)
        np.testing.assert_allclose(onto, X[:5].T @ r, atol=1e-12)
        np.testing.assert_allclose(block.product(rows, w), X[:5] @ w, atol=1e-12)


def test_sparse_rows_outside_the_block_never_reach_a_kernel():
    block = made("sparse", matrix(2, 20, 6))
    with pytest.raises(IndexError):
        block.product(np.array([20], np.uint32), np.zeros(6))


@pytest.mark.parametrize("classes", [(), (2,)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_kernels_as_plain_python_give_what_they_give_compiled(classes, dtype):
    X = sp.csr_array(matrix(5, 12, 7).astype(dtype))
    starts, stops = X.indptr[:-1].astype(np.uint64), X.indptr[1:].astype(np.uint64)
    indices = X.indices.astype(np.uint32)
    w, r = np.ones((7, *classes)) / 3, np.ones((12, *classes)) / 7
    product = kernels.product_many if classes else kernels.product_one
    adjoint = kernels.adjoint_many if classes else kernels.adjoint_one
    outs = [np.zeros((12, *classes)) for _ in range(2)]
    ontos = [np.zeros((7, *classes)) for _ in range(2)]
    norms = [np.zeros(12) for _ in range(2)]
    for k, plain in enumerate((False, True)):
        (product.py_func if plain else product)(starts, stops, indices, X.data, w, outs[k])
        (adjoint.py_func if plain else adjoint)(starts, stops, indices, X.data, r, 0.5, ontos[k])
        (kernels.squares.py_func if plain else kernels.squares)(starts, stops, X.data, norms[k])
    tolerance = 1e-14 if dtype == np.float64 else 1e-5
    for compiled, plain in (outs, ontos, norms):
        np.testing.assert_allclose(compiled, plain, rtol=tolerance)
    np.testing.assert_allclose(outs[0], X.astype(np.float64) @ w, atol=1e-12)


def test_ten_million_columns():
    X = sp.csr_array((np.ones(3), ([0, 2, 2], [0, 9_999_999, 5])), shape=(4, 10_000_000))
    block, w = as_block(X), np.zeros(10_000_000)
    w[[5, 9_999_999]] = 1.0, 2.0
    np.testing.assert_array_equal(block.product(np.array([2, 1, 2]), w), [3.0, 0.0, 3.0])
    block.add_adjoint(np.array([2]), np.ones(1), w)
    assert (w[5], w[9_999_999], w.sum()) == (2.0, 3.0, 5.0)


def test_duplicate_entries_and_stored_zeros_are_summed_and_dropped_in_a_copy():
    X = sp.csr_matrix((np.array([1.0, 2.0, 0.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    block = as_block(X)
    np.testing.assert_array_equal(block.row_norms(), [9.0, 0.0])
    assert block.nonzeros(slice(0, 2)) == 1
    assert X.nnz == 3


def test_a_canonical_csr_matrix_is_not_copied():
    X = sp.csr_array(matrix(0, 10, 4))
    assert np.shares_memory(as_block(X).values, X.data)
    assert as_block(X.astype(np.int64)).values.dtype == np.float64
    wide = X.copy()
    wide.indices = wide.indices.astype(np.int64)
    np.testing.assert_array_equal(as_block(wide).indices, X.indices)


def test_a_broken_csr_matrix_is_refused():
    X = sp.csr_array(matrix(0, 10, 4))
    X.indices[0] = 17
    with pytest.raises(DataError, match="not a valid CSR"):
        as_block(X)


def test_a_block_stays_itself():
    block = as_block(np.eye(2))
    assert as_block(block) is block


def test_tables_and_object_arrays():
    table = pd.DataFrame({"age": [1, 2], "old": [True, False]})
    np.testing.assert_array_equal(as_block(table).values, [[1, 1], [2, 0]])
    np.testing.assert_array_equal(as_block(np.array([[1, 2.5]], object)).values, [[1, 2.5]])
    with pytest.raises(DataError, match="column 'maker' is not made of numbers"):
        as_block(pd.DataFrame({"age": [1.0, 2.0], "maker": ["A", "B"]}))
    with pytest.raises(DataError, match="column 0 is not made of numbers"):
        as_block(np.array([["x"]]))
    with pytest.raises(DataError, match=r"shape \(3,\)"):
        as_block(np.zeros(3))


def test_split_covers_all_rows_in_order():
    for rows in (slice(4, 11), np.arange(4, 11)):
        parts = list(split(rows, 3))
        assert [part for part, _ in parts] == [slice(0, 3), slice(3, 6), slice(6, 7)]
        joined = np.concatenate([np.arange(30)[some] for _, some in parts])
        np.testing.assert_array_equal(joined, np.arange(4, 11))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_named_and_counted(kind, bad):
    X = matrix(0, 20, 4) + 1.0
    X[[3, 5], 2] = bad
    X[1, 3] = np.nan
    with pytest.raises(DataError, match=r"'bank': column 2 has 2 values .* as have 1 more columns"):
        check_block(made(kind, X), "bank")
    X[1, 3] = 0.0
    with pytest.raises(DataError, match="column 'income' has 2 values that are NaN or infinite: fill"):
        check_block(made(kind, X), "bank", ["a", "b", "income", "c"])


def test_columns_of_a_table_are_named():
    with pytest.raises(DataError, match="column 'age' has 1 values"):
        check_block(pd.DataFrame({"x": [1.0, 2.0], "age": [1.0, np.nan]}), "bank")
    with pytest.raises(DataError, match="party 'bank': column 'maker' is not"):
        check_block(pd.DataFrame({"maker": ["A", "B"]}), "bank")


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
@pytest.mark.parametrize("make", [np.zeros, sp.csr_array])
def test_empty_blocks_are_refused(shape, make):
    with pytest.raises(DataError, match=r"'bank' has an empty block \(\d rows, \d columns\)"):
        check_block(make(shape), "bank")


@pytest.mark.parametrize("kind", KINDS)
def test_constant_blocks_are_refused_and_others_are_not(kind):
    constant = np.tile([1.0, 0.0, -2.0], (5, 1))
    for X in (constant, np.zeros((5, 3))):
        with pytest.raises(DataError, match="'bank' holds nothing to learn from: every column is constant"):
            check_block(made(kind, X), "bank")
    for column, value in ((1, 7.0), (0, 3.0), (2, 0.0)):
        X = constant.copy()
        X[3, column] = value
        block = made(kind, X)
        assert check_block(block, "bank") is block


def test_foreign_blocks_are_trusted_with_their_values():
    class Foreign(DenseBlock):
        pass

    class Wrapped:
        rows, columns = 3, 2

        def add_adjoint(self, rows, r, onto, factor=1.0): ...

    wrapped = Wrapped()
    assert check_block(wrapped, "bank") is wrapped
    with pytest.raises(DataError, match="constant"):
        check_block(Foreign(np.ones((3, 2))), "bank")


def test_sparse_blocks_accept_int64_offsets():
    block = SparseBlock(np.array([0, 1, 3]), np.array([0, 0, 1], np.int32), np.arange(3.0), 2)
    np.testing.assert_array_equal(block.product(slice(0, 2), np.array([1.0, 10.0])), [0.0, 21.0])


@pytest.mark.parametrize("kind", KINDS)
def test_a_block_shows_its_matrix(kind):
    X = matrix(0, 10, 4)
    shown = made(kind, X).matrix
    np.testing.assert_array_equal(shown.toarray() if sp.issparse(shown) else shown, X)
