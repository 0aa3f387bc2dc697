"""SGI Altix BX2, NUMALINK3: references/published/000.yaml."""

from clustergate.published.systems import site_of

site_configuration = site_of("altix-bx2-numalink3")
