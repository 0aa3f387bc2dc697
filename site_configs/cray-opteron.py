"""Cray Opteron Cluster (NASA): references/published/000.yaml."""

from evaluations.systems import site_of

# No machine is taken for it.
by_name_alone = True
site_configuration = site_of("cray-opteron")
