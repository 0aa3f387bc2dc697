"""Cray X1, MSP mode: references/published/000.yaml."""

from clustergate.published.systems import site_of

site_configuration = site_of("cray-x1-msp")
