"""Stored runs, one after another."""
