"""A run under ReFrame."""
