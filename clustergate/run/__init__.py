"""A run under ReFrame: prepare, execute, collect, judge, publish."""
