"""NEC SX-8 (HLRS): references/published/000.yaml."""

from evaluations.systems import site_of

site_configuration = site_of("nec-sx8")
