"""The judge: a run against the runs of its baseline. Pure."""
