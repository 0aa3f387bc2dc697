"""How things are said: units, numbers, durations, names of figures and places."""
