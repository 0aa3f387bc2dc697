"""Other people's ReFrame suites: what their sessions left, read as stored runs for the judge."""
