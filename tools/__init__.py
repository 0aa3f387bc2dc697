"""What the developers of the suite measure it with; not installed."""
