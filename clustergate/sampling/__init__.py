"""Several launches of one measurement in one job, each with a folder and a proof of its own.

A check writes a :mod:`plan <clustergate.sampling.plan>`; the job runs the
:mod:`driver <clustergate.sampling.driver>` on its first node, which launches what is planned until
:mod:`it is enough <clustergate.sampling.stopping>` and notes what
:mod:`disturbed <clustergate.sampling.disturbance>` each launch.
"""
