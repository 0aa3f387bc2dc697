"""x336 3.6 GHz with 2 MB of cache, 400 MHz memory, slot PCI-E 8x: references/published/003.yaml."""

from evaluations.systems import site_of

# No machine is taken for it.
by_name_alone = True
site_configuration = site_of("x336-36i-400-pcie")
