"""The suite's own kernels: their inputs, and what they print."""

from clustergate.paths import checkout

SOURCES = checkout() / "clustergate" / "kernels" / "src"
