"""AFSVRG-VP and its twin FSVRG-VP: a snapshot every two passes."""

from experiments.methods import Method

METHOD = Method(name="afsvrg", column="SVRG", target=1e-4)
