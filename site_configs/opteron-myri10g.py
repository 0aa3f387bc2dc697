"""Opteron cluster (Sandia), Myri-10G: references/published/002.yaml."""

from evaluations.systems import site_of

site_configuration = site_of("opteron-myri10g")
