"""What the suite itself costs, beside what it names: ``make bench``."""
