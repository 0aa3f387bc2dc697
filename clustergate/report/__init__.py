"""Reports of a run: for the terminal, for the browser, for CI."""
