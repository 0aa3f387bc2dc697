"""The suite's own kernels: their inputs, and what they print."""

from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "src"
