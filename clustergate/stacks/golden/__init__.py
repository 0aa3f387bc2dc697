"""Golden builds: stacks as they were when a system was accepted, kept to be launched against."""
