"""e326 2.4 GHz, 400 MHz memory, slot 133 MHz: references/published/003.yaml."""

from evaluations.systems import site_of

site_configuration = site_of("e326-24-400-133")
