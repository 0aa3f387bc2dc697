"""Cray T3E-600: references/published/004.yaml."""

from evaluations.systems import site_of

site_configuration = site_of("cray-t3e600")
