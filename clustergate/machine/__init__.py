"""This node: what it has, what of it may be used, and a declared environment for jobs."""
