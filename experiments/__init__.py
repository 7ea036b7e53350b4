"""The papers' experiments: data sets, methods, tables and figures crossed by `python -m experiments.run`."""
