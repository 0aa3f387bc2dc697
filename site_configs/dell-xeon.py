"""Dell Xeon Cluster (NCSA): references/published/000.yaml."""

from evaluations.systems import site_of

site_configuration = site_of("dell-xeon")
