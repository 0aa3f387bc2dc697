"""LAMMPS."""
