"""From figures to verdicts, and to a run with every case in it."""
