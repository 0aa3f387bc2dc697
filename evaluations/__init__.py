"""The five published evaluations: what they printed, on which systems, and what they concluded."""
