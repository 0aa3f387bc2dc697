"""NEC SX-8 (HLRS): references/published/000.yaml."""

from clustergate.published.systems import site_of

site_configuration = site_of("nec-sx8")
