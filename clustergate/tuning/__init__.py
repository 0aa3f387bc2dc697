"""Finding out how HPL runs fastest on a machine: the search, its measurements and its file."""
