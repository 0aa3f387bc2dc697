"""SGI Origin 2000: references/published/004.yaml."""

from evaluations.systems import site_of

# No machine is taken for it.
by_name_alone = True
site_configuration = site_of("sgi-origin2000")
