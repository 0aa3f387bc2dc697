"""SiCortex SC072: references/published/002.yaml."""

from evaluations.systems import site_of

site_configuration = site_of("sicortex-sc072")
