"""The ReFrame checks: one file per benchmark, thin; everything shared is in :mod:`.base`."""

from clustergate.run.loading import refuse_lost_tests, tell_lost_packages, warn_without_sources

# ReFrame imports this before any file of the folder.
refuse_lost_tests()
warn_without_sources()
tell_lost_packages()
