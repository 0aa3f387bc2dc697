"""Several launches of one measurement in one job, each with a folder and a proof of its own.

The :mod:`engine <clustergate.launch.engine>` launches, for every study. A check writes a
:mod:`plan <clustergate.launch.plan>`; the job runs the :mod:`driver
<clustergate.launch.driver>` on its first node, which launches what is planned until :mod:`it is
enough <clustergate.launch.stopping>` and notes what :mod:`disturbed
<clustergate.launch.disturbance>` each launch.
"""
