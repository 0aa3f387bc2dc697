"""A system: copy this file to site_configs/<system>.py and fill it in.

What a partition can do is said by features and extras, never by its name: a check asks for what it
needs. `clustergate dry-run --site <system>` shows what would be run.
"""

from clustergate.sites import configuration, stack

site_configuration = configuration(
    systems=[
        {
            "name": "example",
            "descr": "one line about the machine",
            # Regular expressions that the names of its login and compute nodes match.
            "hostnames": [r"example-login\d+", r"n\d{3}"],
            "partitions": [
                {
                    "name": "compute",
                    # Whatever scheduler ReFrame knows: slurm, squeue, pbs, lsf, local …
                    "scheduler": "slurm",
                    # The suite's launcher: it starts each stack the way that stack wants.
                    "launcher": "clustergate",
                    "access": ["--partition=compute", "--exclusive"],
                    "max_jobs": 1,
                    "extras": {
                        "nodes": 4,
                        # Physical cores, not hardware threads.
                        "cores_per_node": 64,
                        "memory_bytes_per_node": 256 * 2**30,
                        # All its data caches together; what a node can send, in 10**6 bytes/s.
                        "cache_bytes_per_node": 2 * (32 * 2**20 + 32 * 2**20),
                        "link_mb_s": 12500,
                        # One core's nominal Gflop/s: clock in GHz times operations per cycle.
                        "nominal_gflops_per_core": 2.5 * 16,
                    },
                }
            ],
        }
    ],
    # One line per MPI stack; `provider` says who puts it on disk.
    stacks=[stack("intel-mpi"), stack("mpich"), stack("openmpi")],
)
