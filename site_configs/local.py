"""The machine at hand: one node, described as it is found, with the stacks that come as wheels."""

from clustergate.machine.node import read_node
from clustergate.machine.nominal import nominal_gflops_per_core
from clustergate.sites import configuration, stack

node = read_node()

site_configuration = configuration(
    systems=[
        {
            "name": "local",
            "descr": "this machine, detected",
            "hostnames": [".*"],
            "partitions": [
                {
                    "name": "node",
                    "scheduler": "local",
                    "launcher": "clustergate",
                    "max_jobs": 1,
                    "extras": {
                        "nodes": 1,
                        "cores_per_node": node.usable_cores,
                        "memory_bytes_per_node": node.usable_memory_bytes,
                        "cache_bytes_per_node": sum(
                            cache.size_bytes * cache.instances
                            for cache in node.caches
                            if cache.kind != "Instruction"
                        ),
                        "nominal_gflops_per_core": nominal_gflops_per_core(),
                    },
                }
            ],
        }
    ],
    stacks=[stack("intel-mpi"), stack("mpich"), stack("openmpi")],
)
