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
            # Regular expressions for the names of its login and compute nodes: whole names, without
            # or with their domain. No two site configs may claim one machine.
            "hostnames": [r"example-login\d+", r"n\d{3}"],
            "partitions": [
                {
                    "name": "compute",
                    # Whatever scheduler ReFrame knows: slurm, squeue, pbs, lsf, local …
                    "scheduler": "slurm",
                    # The suite's launcher: it starts each stack the way that stack wants. Others
                    # take srun, or ssh and a hostfile: docs/clusters.md.
                    "launcher": "clustergate",
                    "access": ["--partition=compute", "--exclusive"],
                    "max_jobs": 1,
                    # Libraries that /etc/ld.so.preload puts into every program: undeclared, they
                    # make a run invalid.
                    # "env_vars": [["LD_PRELOAD", "/opt/xalt/lib64/libxalt_init.so"]],
                    "extras": {
                        "nodes": 4,
                        # Physical cores, not hardware threads.
                        "cores_per_node": 64,
                        # Beside these, what no job gets, such as Slurm's CoreSpecCount:
                        # "reserved_cores_per_node": 8,
                        # Why a gate need not judge these nodes:
                        # "waived": "measured by its vendor's suite",
                        "memory_bytes_per_node": 256 * 2**30,
                        # All its data caches together; what a node can send, in 10**6 bytes/s.
                        "cache_bytes_per_node": 2 * (32 * 2**20 + 32 * 2**20),
                        "link_mb_s": 12500,
                        # Its NUMA domains with cores; see lscpu.
                        "numa_domains_per_node": 2,
                        # The devices that carry messages between nodes, by their names in
                        # /sys/class/infiniband or /sys/class/net: a launch that went through
                        # others is invalid. Leave it out where nobody knows.
                        # "fabric": ["mlx5_0"],
                        # Where pairs of nodes disturb each other: how many are screened at once.
                        # "screen_at_once": 1,
                        # For performance per watt where RAPL cannot be read, and what it is of.
                        "watts_per_socket": 225,
                        "cores_per_socket": 32,
                        "power_of": "socket",
                        # One core's nominal Gflop/s: clock in GHz times operations per cycle.
                        "nominal_gflops_per_core": 2.5 * 16,
                    },
                }
            ],
        }
    ],
    # One line per MPI stack; `provider` says who puts it on disk. The wheels need nothing else:
    stacks=[
        stack("mpich"),
        # How HPL and HPCC are run with it, once a sweep has told (docs/hpl-tuning.md):
        # stack("mpich", hpl={"nb": 192, "ranks_per_node": 1, "grid": "1x1"}),
        # `clustergate gate` opens when every check was judged with every stack, but for these:
        # stack("openmpi", waived={"HpccCheck": "no build for these nodes yet"}),
        # What is there already, as `clustergate site scan` finds it:
        # stack("mvapich2", provider="modules", modules={"load": ["gcc/12", "mvapich2/2.3.7"]}),
        # What Spack builds; every setting may be left out.
        stack(
            "spack-openmpi",
            provider="spack",
            spack={
                # The folder in spack-repo/environments; by default the name without "spack-".
                "environment": "openmpi",
                # A file of spack-repo/choices/blas and one of choices/fabrics. Without a fabric
                # the recipe's default holds.
                "blas": "openblas",
                "fabric": "ucx",
                # Compile for this processor family instead of that of the node that builds.
                "target": "x86_64_v4",
                # Where Spack installs to, on a file system that the nodes share; by default
                # spack/store in CLUSTERGATE_HOME.
                # "store": "/shared/spack-store",
                # Folders of Spack configuration, the strongest first: the site's MPI, compilers and
                # BLAS as externals or modules (packages.yaml), its upstream stores
                # (upstreams.yaml), mirrors and build caches (mirrors.yaml).
                # "scopes": ["/shared/spack-config", "$spack/etc/spack/site"],
                # What only some checks need: files of spack-repo/applications.
                # "applications": ["npb", "hpccg", "lammps"],
                # Take the MPI library and OpenBLAS from their wheels instead of building them.
                # "externals": "wheels",
                # The Spack to use; by default SPACK_ROOT, `spack` on PATH, or what ci/bootstrap
                # brought.
                # "spack_root": "/shared/spack",
            },
        ),
    ],
)
