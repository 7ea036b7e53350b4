"""The figures that the package is held to: one command each, results beside the scripts.

`python -m experiments.checks.<name>` prints a table and writes results/checks/<name>.json (not with --quick);
`python -m experiments.checks.table` makes docs/figures.md of these.
"""
