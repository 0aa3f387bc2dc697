"""Studies of launches in turn: A against B, and a screening of nodes."""
