"""Linux cluster (Albuquerque), Fast Ethernet: references/published/004.yaml."""

from evaluations.systems import site_of

site_configuration = site_of("ahpcc-linux-ethernet")
