"""Kernels in Triton on the pretended device: interpreted, each of them one launch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from benchmarks.common.pretend_cuda.tally import count_launches
from benchmarks.common.pretend_cuda.tensor import PretendTensor


@contextmanager
def triton_pretended() -> Iterator[None]:
    """The library uses its kernels for pretended tensors while this lasts.

    Raises:
        ImportError: Triton is not installed.
    """
    os.environ.setdefault("TRITON_INTERPRET", "1")  # read when Triton is imported
    from botorch_ext.models import fused_step, fusing

    launch = fused_step._launch

    def launched(kernel: Any, programs: int, *arguments: Any, **constants: Any) -> None:
        count_launches(kernel.fn.__name__, 1)
        hosts = [x.host if isinstance(x, PretendTensor) else x for x in arguments]
        launch(kernel, programs, *hosts, **constants)

    with (
        patch.object(fused_step, "_launch", launched),
        patch.object(fusing, "_is_on_a_gpu", lambda x: isinstance(x, PretendTensor)),
        patch.object(fusing, "_kernels", lambda device: fused_step),
    ):
        yield
