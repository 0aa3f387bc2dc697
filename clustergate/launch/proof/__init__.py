"""What ranks and launches said of themselves, and what speaks against them."""
