"""NumPy and SciPy without the threads of their BLAS, which nothing in the suite needs.

OpenBLAS starts a thread for each further core while it is loaded: on two cores, half of the
processor time of NumPy's import.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

from clustergate.core.environment import set_for_libraries

_THREADS = "OPENBLAS_NUM_THREADS"


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let whatever is loaded meanwhile start no threads of OpenBLAS.

    ``os.environ``, from which the environment of launches is made, stays as it is.
    """
    with set_for_libraries(_THREADS, "1"):
        yield


class _Scipy:
    """SciPy, each of whose parts is loaded when it is needed."""

    def __getattr__(self, part: str) -> Any:
        with one_thread():
            setattr(self, part, importlib.import_module(f"scipy.{part}"))
        return getattr(self, part)


scipy: Any = _Scipy()
