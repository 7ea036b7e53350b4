"""AFSGD-VP and its twin FSGD-VP: the journal's target of 1e-2."""

from experiments.methods import Method

METHOD = Method(name="afsgd", column="SGD", target=1e-2)
