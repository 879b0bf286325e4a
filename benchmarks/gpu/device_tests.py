"""Tests on the GPU: all that take a device, on the real one."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from importlib.util import find_spec

import torch

from benchmarks.gpu.setting import Setting

_MEMORY = 2**32  # for one process of the tests, with room to spare


def run_device_tests(setting: Setting) -> None:
    """Runs the tests that take a device on CUDA; writes how many passed, and which did not.

    Raises:
        SystemExit: A test failed.
    """
    report = setting.output / "tests.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-k", "cuda and not pretended"]
    command += ["--junitxml", str(report)]
    if find_spec("xdist") is not None:
        most = torch.cuda.get_device_properties(setting.device).total_memory // _MEMORY
        command += ["-n", "logical", "--maxprocesses", str(max(most, 1))]
    report.unlink(missing_ok=True)
    code = subprocess.run([*command, "tests"]).returncode
    if not report.exists():
        sys.exit(f"pytest wrote no report, and ended with {code}")
    cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    report.unlink()
    failed = [
        {"test": f"{case.get('classname')}::{case.get('name')}".replace("|", "/")}
        for case in cases
        if case.find("failure") is not None or case.find("error") is not None
    ]
    skipped = sum(case.find("skipped") is not None for case in cases)
    passed = len(cases) - len(failed) - skipped
    text = f"{passed} passed, {len(failed)} failed, {skipped} skipped."
    setting.write("tests", "Tests on the GPU", text, failed or [{"test": "none failed"}])
    if code:
        sys.exit(code)
