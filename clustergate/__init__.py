"""clustergate: the gate a cluster passes before it goes back to its users."""


def version() -> str:
    """Return the version of the suite as it was installed: a tag's, or what comes after one."""
    import importlib.metadata  # costs each start of a job what few need

    return importlib.metadata.version("clustergate")
