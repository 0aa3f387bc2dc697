"""e326 2.4 GHz, 400 MHz memory, slot 100 MHz: references/published/003.yaml."""

from evaluations.systems import site_of

# No machine is taken for it.
by_name_alone = True
site_configuration = site_of("e326-24-400-100")
