"""The suite as a package of Spack's, from the clone that this repository is part of."""

import os
import shutil
from pathlib import Path

from spack.package import depends_on, filter_file, license, run_after, variant, version, which
from spack_repo.builtin.build_systems.python import PythonPackage, PythonPipBuilder

CLONE = Path(__file__).resolve().parents[5]


class PyClustergate(PythonPackage):
    """The gate a cluster passes before it goes back to its users.

    ReFrame checks of HPL, HPCC and the Intel MPI Benchmarks under several MPI stacks.
    """

    has_code = False
    build_directory = str(CLONE)

    license("BSD-3-Clause")

    version("develop")

    variant("evaluations", default=True, description="Five published evaluations, to be repeated")

    # The stacks are compiled at run time, by the compiler on PATH.
    depends_on("gmake", type="run")
    depends_on("python@3.10:", type=("build", "run"))
    depends_on("py-setuptools@77:", type="build")
    depends_on("py-setuptools-scm@8:", type="build")
    depends_on("clingo@5.7:5+python", type=("build", "run"))
    # As pyproject.toml has them, but for Polars: ReFrame's own comparisons want a later one than
    # builtin has, and the suite does not call them.
    for _needed in (
        *("archspec@0.2.5:0.2", "clustershell@1.9.2:1", "filelock@3.12:4", "jinja2@3.1:3"),
        *(
            "jsonschema@4.26:4",
            "markdown-it-py@3:4",
            "msgspec@0.19:0",
            "numpy@1.26:2",
            "packaging@23.1:",
            "pip@22.3:",
        ),
        *("polars@1.29:1", "psutil@5.9.6:7", "pyyaml@6.0.1:6", "reframe-hpc@4.10.4:4.10"),
        *("requests@2.33:2", "rich@13.7:15", "ruamel-yaml@0.18.5:0.19", "scipy@1.12:1"),
        "shtab@1.13:1",
    ):
        depends_on(f"py-{_needed}", type=("build", "run"))

    @run_after("install", when="+evaluations")
    def add_the_papers(self) -> None:
        """Install the package that the clone makes of the published evaluations."""
        arguments = [*PythonPipBuilder.std_args(self), f"--prefix={self.prefix}"]
        self.spec["python"].command("-m", "pip", *arguments, str(CLONE / "evaluations"))

    @run_after("install")
    def give_it_a_python(self) -> None:
        """Make an environment that finds all packages by itself, and let the programs start it.

        Jobs start Python in isolation, without what ``spack load`` puts into PYTHONPATH.
        """
        python = self.spec["python"].command
        ours, installed = self.prefix.libexec, self.spec["python-venv"].package.purelib
        python("-m", "venv", "--without-pip", ours)
        packages = [self.spec, *self.spec.traverse(root=False, deptype=("link", "run"))]
        folders = [os.path.join(one.prefix, installed) for one in packages]
        listed = [folder for folder in dict.fromkeys(folders) if os.path.isdir(folder)]
        Path(ours, installed, "packages.pth").write_text("".join(f"{one}\n" for one in listed))
        for name, of in (("clustergate", self.spec), ("reframe", self.spec["py-reframe-hpc"])):
            program = os.path.join(ours, "bin", name)
            shutil.copy2(of.prefix.bin.join(name), program)
            filter_file("^#!.*", f"#!{ours}/bin/python3", program)
        os.remove(self.prefix.bin.clustergate)
        os.symlink(os.path.join(ours, "bin", "clustergate"), self.prefix.bin.clustergate)
        # A package that lacks is found here rather than in a job.
        which(os.path.join(ours, "bin", "clustergate"), required=True)("--version")
