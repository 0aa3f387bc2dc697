"""What batch systems say of nodes and jobs."""
