"""A system of the example: one large node, stacks from Spack."""

from clustergate.sites import configuration, stack

site_configuration = configuration(
    systems=[
        {
            "name": "beta",
            "descr": "an example",
            "hostnames": ["beta"],
            "partitions": [
                {
                    "name": "node",
                    "scheduler": "local",
                    "launcher": "clustergate",
                    "max_jobs": 1,
                    "extras": {
                        "nodes": 1,
                        "cores_per_node": 32,
                        "memory_bytes_per_node": 512 * 2**30,
                        "cache_bytes_per_node": 96 * 2**20,
                        "nominal_gflops_per_core": 3.0 * 32,
                    },
                }
            ],
        }
    ],
    stacks=[
        stack("spack-mvapich2", provider="spack", spack={"fabric": "shm"}),
        stack("spack-openmpi", provider="spack", spack={"blas": "amdblis"}),
    ],
)
