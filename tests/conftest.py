"""What all tests share: one BLAS thread, the same examples every time, and the data sets where they are."""

import os
from pathlib import Path

import hypothesis
import pytest

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"  # BLAS reads it when a test first imports numpy

hypothesis.settings.register_profile("same-every-time", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("same-every-time")

DATA = os.environ.get("COLONNADE_DATA")


@pytest.fixture(scope="session")
def colonnade_data():
    """The folder of real data sets that COLONNADE_DATA names."""
    if not DATA:
        pytest.skip("COLONNADE_DATA is not set: name the folder of the data sets to run this test")
    folder = Path(DATA)
    assert folder.is_dir(), f"COLONNADE_DATA = {DATA}: no such folder"
    return folder


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """With the data sets at hand, a test of them that is skipped has failed."""
    report = yield
    if DATA and report.skipped and "colonnade_data" in item.fixturenames and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped although COLONNADE_DATA is set: {call.excinfo.value}"
    return report
