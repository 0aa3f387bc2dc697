"""A system of the example: 4 nodes under Slurm, stacks from wheels."""

from clustergate.sites import configuration, stack

site_configuration = configuration(
    systems=[
        {
            "name": "alpha",
            "descr": "an example",
            "hostnames": [r"alpha-login\d+", r"a\d{3}"],
            "partitions": [
                {
                    "name": "compute",
                    "scheduler": "slurm",
                    "launcher": "clustergate",
                    "access": ["--partition=compute", "--exclusive"],
                    "max_jobs": 1,
                    "extras": {
                        "nodes": 4,
                        "cores_per_node": 64,
                        "memory_bytes_per_node": 256 * 2**30,
                        "cache_bytes_per_node": 128 * 2**20,
                        "link_mb_s": 12500,
                        "nominal_gflops_per_core": 2.5 * 16,
                    },
                }
            ],
        }
    ],
    stacks=[stack("intel-mpi"), stack("mpich"), stack("openmpi")],
)
