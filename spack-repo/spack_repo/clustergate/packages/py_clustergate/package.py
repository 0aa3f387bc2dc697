"""The suite as a package of Spack's, from the clone that this repository is part of."""

from pathlib import Path

from spack.package import depends_on, license, version
from spack_repo.builtin.build_systems.python import PythonPackage

CLONE = Path(__file__).resolve().parents[5]


class PyClustergate(PythonPackage):
    """The gate a cluster passes before it goes back to its users.

    ReFrame checks of HPL, HPCC and the Intel MPI Benchmarks under several MPI stacks. Use it in an
    environment with a view: its jobs start Python without the variables that ``spack load`` sets.
    """

    has_code = False
    build_directory = str(CLONE)

    license("BSD-3-Clause")

    version("develop")

    # The stacks are compiled at run time, by the compiler on PATH.
    depends_on("gmake", type="run")
    depends_on("python@3.10:", type=("build", "run"))
    depends_on("py-setuptools@77:", type="build")
    depends_on("py-setuptools-scm@8:", type="build")
    depends_on("clingo@5.7:5+python", type=("build", "run"))
    # As pyproject.toml has them; builtin has older ones of Polars and shtab.
    for _needed in (
        *("archspec@0.2.5:0.2", "clustershell@1.9.2:1", "filelock@3.12:4", "jinja2@3.1:3"),
        *("jsonschema@4.26:4", "numpy@1.26:2", "packaging@23.1:", "pip@22.3:"),
        *("polars@1.29:1", "psutil@5.9.6:7", "pyyaml@6.0.1:6", "reframe-hpc@4.10.4:4.10"),
        *("requests@2.33:2", "rich@13.7:15", "ruamel-yaml@0.18.5:0.19", "scipy@1.12:1", "shtab"),
    ):
        depends_on(f"py-{_needed}", type=("build", "run"))
