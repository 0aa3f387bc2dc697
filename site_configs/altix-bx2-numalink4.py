"""SGI Altix BX2, NUMALINK4: references/published/000.yaml."""

from evaluations.systems import site_of

# No machine is taken for it.
by_name_alone = True
site_configuration = site_of("altix-bx2-numalink4")
