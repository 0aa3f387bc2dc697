"""ReFrame as clustergate reads it: builtin's recipe has no release of 2026."""

from spack.package import depends_on, version
from spack_repo.builtin.build_systems.python import PythonPackage


class PyReframeHpc(PythonPackage):
    """A framework for system regression tests and benchmarks on HPC systems."""

    homepage = "https://reframe-hpc.readthedocs.io"
    pypi = "reframe-hpc/reframe_hpc-4.10.4.tar.gz"

    version("4.10.4", sha256="0d3b0246664fa5b98dc50deed239282300fd74684c607f6b23b5484b924e988b")

    depends_on("python@3.10:", type=("build", "run"))
    depends_on("py-hatchling@1.29:", type="build")
    for _needed in (
        *("archspec@0.2.4:", "argcomplete@3.6:3", "clustershell@1.9:1", "fasteners@0.20:0"),
        *("jinja2@3.1:3", "jsonschema@4.26:4", "lxml@6", "pyyaml@6", "requests@2.33:2"),
        *("semver@3", "tabulate@0.9:0"),
    ):
        depends_on(f"py-{_needed}", type=("build", "run"))
