"""What `ci/virtual-cluster up --scheduler pbs FILE` brings up; virtual_cluster.py tells more.

Its partitions differ in who starts the ranks: each stack's own launcher in a job of OpenPBS, or
that launcher over ssh on the nodes of hostfiles/virtual-cluster.txt.
"""

from clustergate.machine.nominal import nominal_gflops_per_core
from clustergate.sites import configuration, stack

PARTITION = {
    "max_jobs": 1,
    "extras": {
        "nodes": 4,
        "cores_per_node": 2,
        "memory_bytes_per_node": 2**30,
        "nominal_gflops_per_core": nominal_gflops_per_core(),
        "fabric": ["eth0"],
        "bind_to_cores": False,
        "screen_at_once": 1,
    },
}
PBS = {**PARTITION, "scheduler": "pbs", "access": ["-q workq", "-l place=scatter:excl"]}

site_configuration = configuration(
    systems=[
        {
            "name": "virtual-cluster",
            "descr": "namespaces of one machine, with a real OpenPBS",
            "hostnames": ["virtual-cluster$"],
            "partitions": [
                {**PBS, "name": "pbs", "launcher": "clustergate"},
                {**PARTITION, "name": "ssh", "scheduler": "local", "launcher": "clustergate-ssh"},
            ],
        }
    ],
    stacks=[
        stack("intel-mpi", env_vars=[["FI_PROVIDER", "tcp"]]),
        stack("mpich", env_vars=[["MPIR_CVAR_CH4_NETMOD", "ofi"]]),
        stack("openmpi"),
    ],
)
