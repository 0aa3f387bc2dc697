"""Cray X1, SSP mode: references/published/000.yaml."""

from evaluations.systems import site_of

# No machine is taken for it.
by_name_alone = True
site_configuration = site_of("cray-x1-ssp")
