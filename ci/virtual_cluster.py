"""The virtual cluster of ci/virtual-cluster: four nodes of two cores that share one machine.

Its partitions differ in who starts the ranks: Slurm's srun, each stack's own launcher in a job of
Slurm or, after `up --scheduler pbs FILE`, of OpenPBS, or that launcher over ssh on the nodes of
hostfiles/virtual-cluster.txt.
"""

from pathlib import Path

from clustergate.machine.nominal import nominal_gflops_per_core
from clustergate.sites import configuration, stack

# Which scheduler came up: the nodes of a cluster under OpenPBS have this file.
PBS_CONF = Path("/run/pbs.conf")
# There is no other network; Intel MPI would look for one.
TCP = [["FI_PROVIDER", "tcp"]]
# As `site scan` writes it where there is no RDMA device.
OFI = [["MPIR_CVAR_CH4_NETMOD", "ofi"]]
PARTITION = {
    "max_jobs": 1,
    "extras": {
        "nodes": 4,
        "cores_per_node": 2,
        "memory_bytes_per_node": 2**30,
        "nominal_gflops_per_core": nominal_gflops_per_core(),
        "fabric": ["eth0"],
        # The nodes share the cores: the first of each would be the same one.
        "bind_to_cores": False,
        # And pairs that are measured at once would take them from each other.
        "screen_at_once": 1,
    },
}
SLURM = {**PARTITION, "scheduler": "slurm", "access": ["--partition=main", "--exclusive"]}
PBS = {**PARTITION, "scheduler": "pbs", "access": ["-q workq", "-l place=scatter:excl"]}
UNDER_SLURM = [
    {**SLURM, "name": "srun", "launcher": "clustergate-srun"},
    {**SLURM, "name": "mpirun", "launcher": "clustergate"},
]
UNDER_PBS = [{**PBS, "name": "pbs", "launcher": "clustergate"}]

site_configuration = configuration(
    systems=[
        {
            "name": "virtual-cluster",
            "descr": "namespaces of one machine, with a real Slurm or OpenPBS",
            "hostnames": ["virtual-cluster$"],
            "partitions": [
                *(UNDER_PBS if PBS_CONF.exists() else UNDER_SLURM),
                {**PARTITION, "name": "ssh", "scheduler": "local", "launcher": "clustergate-ssh"},
            ],
        }
    ],
    stacks=[stack("intel-mpi", env_vars=TCP), stack("mpich", env_vars=OFI), stack("openmpi")],
)
