"""References made from stored runs, or why not."""
