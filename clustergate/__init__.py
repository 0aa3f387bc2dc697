"""clustergate: the gate a cluster passes before it goes back to its users."""

__version__ = "0.1.0"
