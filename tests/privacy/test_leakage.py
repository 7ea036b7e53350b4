"""The rank check against brute force, and against trees whose leaks are known by hand."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.privacy.leakage import echelon, leaks, learns, learnt, pairs_that_see, received
from colonnade.privacy.trees import balanced, chain, star, two_trees

matrices = st.tuples(st.integers(1, 4), st.integers(1, 5)).flatmap(
    lambda size: st.lists(
        st.lists(st.integers(-3, 3), min_size=size[1], max_size=size[1]), min_size=size[0], max_size=size[0]
    )
)


@given(matrices)
def test_echelon_keeps_the_row_space(rows):
    reduced = echelon(rows, "rationals")
    rank = np.linalg.matrix_rank(np.array(rows, float))
    assert len(reduced) == rank
    assert np.linalg.matrix_rank(np.array(rows + reduced, float)) == rank


def all_sums(rows, width):
    """Every combination over GF(2)."""
    matrix = np.array(rows, int).reshape(len(rows), width)
    return {
        tuple((np.array(chosen, int) @ matrix % 2).tolist()) for chosen in product((0, 1), repeat=len(rows))
    }


@given(matrices, st.integers(1, 5))
def test_what_is_learnt_over_bits_is_found_by_trying_all_combinations(rows, products):
    width = len(rows[0])
    products = min(products, width)
    basis = learnt(rows, products, "bits")
    clean = {row[:products] for row in all_sums(rows, width) if not any(row[products:])}
    assert all_sums(basis, products) == clean
    assert len(clean) == 2 ** len(basis)


@given(matrices, st.integers(1, 4))
def test_what_is_learnt_over_the_rationals_has_the_dimension_of_the_intersection(rows, products):
    products = min(products, len(rows[0]))
    matrix = np.array(rows, float)
    rank, masks = np.linalg.matrix_rank(matrix), matrix[:, products:]
    basis = learnt(rows, products)
    assert len(basis) == rank - (np.linalg.matrix_rank(masks) if masks.size else 0)
    padded = [row + [0] * masks.shape[1] for row in basis]
    assert np.linalg.matrix_rank(np.array(rows + padded, float)) == rank


def test_nothing_seen_is_nothing_learnt():
    assert learnt([], 3) == []


def test_equal_trees_leak_by_the_trap_of_definition_1():
    """One leaf's masked share and that leaf's mask at the same party: party 2 reads party 3."""
    assert leaks(4, balanced, balanced, 0)[2] == [[0, 0, 0, 1]]
    assert 0 in leaks(4, balanced, balanced, 0)


def test_plain_trees_leak_to_every_parent():
    assert leaks(4, balanced, None, 0) == {0: [[0, 1, 0, 0], [0, 0, 1, 1]], 2: [[0, 0, 0, 1]]}
    assert set(leaks(5, star, None, 2)) == {2}


def test_a_chain_in_clear_tells_the_requester_the_total_alone():
    assert learns(4, chain, None, 1, [1]) == [[1, 0, 1, 1]]


@pytest.mark.parametrize("q", [3, 4, 5, 8, 16])
def test_pairs_are_those_that_the_general_check_finds(q):
    trees = two_trees(q)
    quick = pairs_that_see(q, *trees, 1)
    for first in range(q):
        for second in range(first + 1, q):
            for field in ("rationals", "bits"):
                space = learns(q, *trees, 1, [first, second], field)
                alone = tuple(row.index(1) for row in space if sum(map(abs, row)) == 1)
                assert quick.get((first, second), ()) == tuple(sorted(alone))


def test_pairs_told_the_total_may_read_the_requester():
    assert pairs_that_see(4, *two_trees(4), 0) == {(0, 3): (1, 2)}
    told = pairs_that_see(5, *two_trees(5), 0, told=True)
    assert told == {(0, 2): (1,), (0, 3): (4,), (1, 3): (2,), (1, 4): (0,), (2, 4): (3,)}
    assert learns(5, *two_trees(5), 0, [1, 4]) == [[0, 0, 1, 1, 0]]


@pytest.mark.parametrize("q", range(6, 65))
def test_few_pairs_see_anything_in_a_balanced_pair(q):
    assert len(pairs_that_see(q, *two_trees(q), 0, told=True)) <= 3


def test_a_viewer_does_not_see_its_own():
    assert received(8, balanced, 0, [4, 6]) == [frozenset({5}), frozenset({7}), frozenset({7})]


@pytest.mark.parametrize("q", range(3, 9))
def test_pairwise_masks_hide_all_but_the_total(q):
    """Unknowns: a product a party, a mask a pair of answering parties. Party 0 requests."""
    answering = range(1, q)
    pairs = [(a, b) for a in answering for b in answering if a < b]

    def seen(own):
        known = {own} if own else set()
        for me in set(answering) - known:
            signs = [0 if own in pair else (me == pair[0]) - (me == pair[1]) for pair in pairs]
            yield [int(party == me) for party in range(q)] + signs

    for field in ("rationals", "bits"):
        assert learnt(seen(None), q, field) == [[0] + [1] * (q - 1)]
        assert learnt(seen(2), q, field) == [[0, 1, 0] + [1] * (q - 3)]
