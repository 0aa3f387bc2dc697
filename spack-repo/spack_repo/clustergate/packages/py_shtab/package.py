"""shtab with completion for fish, and of today's parsers for zsh: builtin has releases of 2021."""

from spack.package import depends_on, version
from spack_repo.builtin.build_systems.python import PythonPackage


class PyShtab(PythonPackage):
    """Shell completion of programs whose options argparse reads."""

    homepage = "https://tqdm.github.io/shtab"
    pypi = "shtab/shtab-1.13.0.tar.gz"

    version("1.13.0", sha256="0a5be9d7ab2b4549e9a38252abcd5ecf5ec6813ecd80c6b06fa851bff55a5085")

    depends_on("python@3.9:", type=("build", "run"))
    depends_on("py-setuptools@77:", type="build")
    depends_on("py-setuptools-scm@3.4:", type="build")
