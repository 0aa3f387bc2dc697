"""e326 2.4 GHz, 333 MHz memory, slot 133 MHz: references/published/003.yaml."""

from evaluations.systems import site_of

# No machine is taken for it.
by_name_alone = True
site_configuration = site_of("e326-24-333-133")
