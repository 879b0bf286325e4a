"""The benchmark of studies fails where a figure is not what it must be."""

from unittest.mock import patch

import pytest

from benchmarks.studies import __main__ as benchmark
from benchmarks.studies import busy_machine


def _measured(tmp_path, ratio, *options):
    """The report, where asks in a busy machine take so many times as long."""
    with patch.object(busy_machine, "rows", lambda *_: [{"busy/quiet": ratio}]):
        benchmark.main(["--only", "busy_machine", "--output", str(tmp_path), *options])
    return (tmp_path / "report.md").read_text()


def test_a_figure_that_does_not_hold_fails_and_is_reported(tmp_path):
    with pytest.raises(SystemExit, match="busy_machine: busy/quiet at most 2"):
        _measured(tmp_path, 2.01)
    assert "| 2.01 | **no** |" in (tmp_path / "report.md").read_text()
    assert "| 2 | yes |" in _measured(tmp_path, 2.0)


def test_a_smoke_run_judges_no_times(tmp_path):
    assert "at most 2 |" not in _measured(tmp_path, 2.01, "--smoke")
