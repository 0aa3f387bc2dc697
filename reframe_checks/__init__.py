"""The ReFrame checks: one file per benchmark, thin; everything shared is in :mod:`.base`."""
