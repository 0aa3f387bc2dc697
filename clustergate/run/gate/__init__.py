"""Whether a cluster goes back to its users."""
