"""Linux cluster (Albuquerque), Myrinet: references/published/004.yaml."""

from evaluations.systems import site_of

site_configuration = site_of("ahpcc-linux-myrinet")
