"""HPCCG."""
