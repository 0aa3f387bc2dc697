"""SiCortex SC072: references/published/002.yaml."""

from clustergate.published.systems import site_of

site_configuration = site_of("sicortex-sc072")
