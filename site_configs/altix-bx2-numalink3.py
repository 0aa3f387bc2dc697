"""SGI Altix BX2, NUMALINK3: references/published/000.yaml."""

from evaluations.systems import site_of

site_configuration = site_of("altix-bx2-numalink3")
