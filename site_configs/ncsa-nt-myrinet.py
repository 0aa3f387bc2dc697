"""NT cluster (NCSA), Myrinet: references/published/004.yaml."""

from evaluations.systems import site_of

site_configuration = site_of("ncsa-nt-myrinet")
