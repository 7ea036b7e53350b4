"""AFSAGA-VP and its twin FSAGA-VP: one sweep, then a table of slopes."""

from experiments.methods import Method

METHOD = Method(name="afsaga", column="SAGA", target=1e-4)
