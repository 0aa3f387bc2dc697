"""Dell M610 Westmere cluster, QDR InfiniBand: references/published/001.yaml."""

from evaluations.systems import site_of

# No machine is taken for it.
by_name_alone = True
site_configuration = site_of("westmere-m610-qdr")
