"""Trees reach everybody from any requester; Algorithm 2's pair passes the rank check for every q."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from colonnade.errors import ConfigurationError
from colonnade.privacy.leakage import leaks, subtree
from colonnade.privacy.trees import balanced, chain, reversed_chain, shifted, star, turned, two_trees

TREES = [star, balanced, turned, chain, reversed_chain, shifted]
places = st.integers(1, 130).flatmap(lambda q: st.tuples(st.just(q), st.integers(0, q - 1)))


def depth(tree, q, requester, me):
    parent = tree(q, requester, me)[0]
    return 0 if parent is None else 1 + depth(tree, q, requester, parent)


@given(st.sampled_from(TREES), places)
def test_every_party_reaches_the_requester_and_is_known_to_its_parent(tree, place):
    q, requester = place
    if tree is shifted and q == 1:
        return
    for me in range(q):
        parent, children = tree(q, requester, me)
        assert (parent is None) == (me == requester)
        assert all(tree(q, requester, child)[0] == me for child in children)
        assert len(set(children)) == len(children)
    assert subtree(q, tree, requester, requester) == frozenset(range(q))


def test_the_tree_of_algorithm_1_pairs_workers_then_pairs():
    assert [balanced(8, 0, me)[1] for me in range(8)] == [(1, 2, 4), (), (3,), (), (5, 6), (), (7,), ()]
    assert balanced(4, 2, 3) == (2, ())
    assert balanced(4, 2, 2) == (None, (3, 0))


@pytest.mark.parametrize("q", [3, 4, 8, 9, 64, 100, 1000])
def test_trees_are_the_same_for_every_requester_up_to_names(q):
    for tree in two_trees(q):
        parent, children = tree(q, 0, q - 1)
        for requester in (1, q // 2, q - 1):
            moved = tuple((child + requester) % q for child in children)
            assert tree(q, requester, (q - 1 + requester) % q) == ((parent + requester) % q, moved)


@pytest.mark.parametrize("q", [4, 6, 7, *range(8, 65), 1000, 1025])
def test_both_trees_of_a_balanced_pair_are_logarithmic(q):
    assert {tree.__name__ for tree in two_trees(q)} == {"balanced", "shifted"}
    for tree in two_trees(q):
        assert max(depth(tree, q, 0, me) for me in range(q)) <= q.bit_length()


@pytest.mark.parametrize("q", range(3, 65))
def test_the_pair_passes_the_rank_check(q):
    """By symmetry for one requester; two more are checked all the same, over both fields."""
    for requester in {0, 1, q - 1}:
        assert leaks(q, *two_trees(q), requester, "rationals") == {}
        assert leaks(q, *two_trees(q), requester, "bits") == {}


@pytest.mark.parametrize("q", [65, 66, 100, 128, 129, 257])
def test_the_recipe_goes_on_above_64_parties(q):
    assert leaks(q, *two_trees(q), 0, "bits") == {}


@pytest.mark.parametrize("q", [*range(6, 65), 129, 1000])
def test_only_the_requester_receives_both_masked_shares_and_masks(q):
    first, second = two_trees(q)
    assert all(not (first(q, 0, me)[1] and second(q, 0, me)[1]) for me in range(1, q))


@pytest.mark.parametrize("q", range(4, 65))
def test_the_pair_is_significantly_different_as_definition_1_says(q):
    """No group of the first tree is one of the second, but for all parties without the requester."""
    first, second = ({subtree(q, tree, 0, me) for me in range(1, q)} for tree in two_trees(q))
    assert all(len(group) in (1, q - 1) for group in first & second)


@pytest.mark.parametrize("q, why", [(3, "five"), (5, "three"), (9, "shift 1")])
def test_the_exceptions_of_the_recipe_are_needed(q, why):
    """Without them the rank check fails: it can."""
    if why == "shift 1":
        onto = {me: 1 + me % (q - 1) for me in range(1, q)} | {0: 0}
        back = {new: old for old, new in onto.items()}

        def second(q, requester, me):
            parent, children = balanced(q, 0, back[me])
            return None if parent is None else onto[parent], tuple(onto[child] for child in children)
    else:
        second = shifted
    assert leaks(q, balanced, second, 0)


def test_two_parties_cannot_have_two_trees():
    with pytest.raises(ConfigurationError, match="needs three parties"):
        two_trees(2)


def test_one_party_sends_nothing():
    assert [tree(1, 0, 0) for tree in two_trees(1)] == [(None, ()), (None, ())]


def test_a_turned_tree_uses_the_same_links_whoever_asks():
    links = {
        frozenset((me, parent))
        for requester in range(37)
        for me in range(37)
        if (parent := turned(37, requester, me)[0]) is not None
    }
    assert len(links) == 36
