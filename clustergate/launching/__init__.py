"""Several launches of one measurement in one job, each with a folder and a proof of its own.

The :mod:`engine <clustergate.launching.engine>` launches, for every study. A check writes a
:mod:`plan <clustergate.launching.plan>`; the job runs the :mod:`driver
<clustergate.launching.driver>` on its first node, which launches what is planned until :mod:`it is
enough <clustergate.launching.stopping>` and notes what :mod:`disturbed
<clustergate.launching.disturbance>` each launch.
"""
