"""ReFrame's loader, so that it takes a file of tests as it was imported before."""

from __future__ import annotations

from typing import Any

from reframe.frontend.loader import RegressionCheckLoader

_load = RegressionCheckLoader.load_from_file


def load_once(loader: Any, filename: str, force: bool = False) -> Any:
    """Load a file of tests, never by force.

    By force a module that is installed beside ReFrame is imported anew, though other tests have its
    classes already, and Python takes the two copies for different classes. ReFrame's command line
    asks for that on behalf of ReFrame's own unit tests alone.
    """
    return _load(loader, filename)


RegressionCheckLoader.load_from_file = load_once
