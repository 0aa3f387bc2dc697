"""The node's peaks, which are no launch."""

from __future__ import annotations

from clustergate.machine.kernels.peaks import parse_peaks as read

__all__ = ["read"]
STDOUT = False
ECHO = r"(?!)"


def asked(text: str) -> None:
    """Return nothing: they are asked for nothing."""
