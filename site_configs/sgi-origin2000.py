"""SGI Origin 2000: references/published/004.yaml."""

from evaluations.systems import site_of

site_configuration = site_of("sgi-origin2000")
