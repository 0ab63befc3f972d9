"""Assertions on dumps for tests."""

from __future__ import annotations

from typing import Any

from .comparison import Dump, Report, compare

__all__ = ["assert_dumps_close"]


def assert_dumps_close(golden: Dump, target: Dump | None = None, **options: Any) -> Report:
    """
    Assert that two dumps are the same, or close.

    Parameters
    ----------
    golden, target, **options
        As for `fxtap.compare`.

    Returns
    -------
    Report
        The report of the comparison.

    Raises
    ------
    AssertionError
        The dumps differ, something is missing on one side, or a file cannot be read. The message is the report as the
        program prints it.
    """
    __tracebackhide__ = True
    report = compare(golden, target, **options)
    if report.exit_status != 0:
        raise AssertionError(report.to_text())
    return report
