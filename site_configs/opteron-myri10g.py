"""Opteron cluster (Sandia), Myri-10G: references/published/002.yaml."""

from evaluations.systems import site_of

# No machine is taken for it.
by_name_alone = True
site_configuration = site_of("opteron-myri10g")
