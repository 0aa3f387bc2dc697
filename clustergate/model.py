"""Where packages of sites import the types of benchmarks from: all of ``model``."""

from clustergate.core.model import *  # noqa: F403
