import platform
import shutil
import subprocess

import pytest

from clustergate.core.model import ClustergateError
from clustergate.stacks.spack.externals import jumps
from clustergate.stacks.spack.linkage import (
    BLAS_LIBRARY,
    MPI_LIBRARY,
    complaints,
    library_file,
    loaded_libraries,
)

MPI = "/store/mpich-5.0.2-abc"
BLAS = "/store/openblas-0.3.28-def"
LDD = f"""\
\tlinux-vdso.so.1 (0x00007f50419d5000)
\tlibopenblas.so.0 => {BLAS}/lib/libopenblas.so.0 (0x00007f5040200000)
\tlibmpi.so.12 => {MPI}/lib/libmpi.so.12 (0x00007f503f000000)
\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f503ee1e000)
\t/lib64/ld-linux-x86-64.so.2 (0x00007f50419d7000)
"""


def told(text, mpi=MPI, blas=BLAS):
    return complaints("xhpl", text, mpi=mpi, blas=blas, resolve=str)


def test_ldds_text_is_read():
    loaded = loaded_libraries(LDD)
    assert loaded["libmpi.so.12"] == f"{MPI}/lib/libmpi.so.12"
    assert "linux-vdso.so.1" not in loaded


def test_a_program_of_its_lock_has_no_complaints():
    assert told(LDD) == []
    assert library_file(LDD, MPI_LIBRARY, MPI, str) == f"{MPI}/lib/libmpi.so.12"
    assert library_file(LDD, BLAS_LIBRARY, BLAS, str) == f"{BLAS}/lib/libopenblas.so.0"


def test_another_mpi_is_found_out():
    (sentence,) = told(LDD.replace(f"{MPI}/lib", "/usr/lib/x86_64-linux-gnu"))
    assert sentence == (
        f"xhpl should take its MPI library from {MPI} and takes "
        "/usr/lib/x86_64-linux-gnu/libmpi.so.12"
    )


def test_another_blas_is_found_out():
    (sentence,) = told(LDD.replace(f"{BLAS}/lib/libopenblas.so.0", "/usr/lib/libblas.so.3"))
    assert "should take its BLAS library from" in sentence


def test_a_prefix_of_the_system_does_not_excuse_a_missing_blas():
    without = "".join(line for line in LDD.splitlines(True) if "openblas" not in line)
    (sentence,) = told(without, blas="/lib")
    assert sentence.endswith("and takes none")


def test_two_mpi_libraries_at_once_are_found_out():
    second = "\tlibmpi.so.40 => /opt/openmpi/lib/libmpi.so.40 (0x00007f5030000000)\n"
    (sentence,) = told(LDD + second)
    assert "linked with more than one MPI library" in sentence


def test_a_library_that_is_not_found_is_named():
    (first, *_) = told(LDD.replace(f"{MPI}/lib/libmpi.so.12 (0x00007f503f000000)", "not found"))
    assert first == "xhpl needs libmpi.so.12, which the loader does not find"


@pytest.mark.parametrize("text", ["\tnot a dynamic executable\n", ""])
def test_a_static_program_proves_nothing(text):
    (sentence,) = told(text)
    assert sentence.startswith("ldd cannot tell what xhpl is linked with")


def test_a_kernel_without_mpi_and_blas_is_asked_for_neither():
    assert told("\tlibc.so.6 => /lib/libc.so.6 (0x00007f503ee1e000)\n", mpi=None, blas=None) == []


def test_links_are_followed_on_both_sides(tmp_path):
    real = tmp_path / "wheel"
    real.mkdir()
    library = real / "libmpi.so.12"
    library.touch()
    prefix = tmp_path / "external"
    (prefix / "lib").mkdir(parents=True)
    (prefix / "lib" / "libmpi.so.12").symlink_to(library)
    text = f"\tlibmpi.so.12 => {prefix}/lib/libmpi.so.12 (0x00007f503ee1e000)\n"
    assert complaints("xhpl", text, mpi=str(prefix), blas=None) == []
    assert library_file(text, MPI_LIBRARY, str(prefix)) == str(library)


def test_several_parts_of_a_blas_stand_for_its_folder():
    text = (
        "\tlibmkl_intel_lp64.so.2 => /mkl/lib/libmkl_intel_lp64.so.2 (0x00007f503ee1e000)\n"
        "\tlibmkl_core.so.2 => /mkl/lib/libmkl_core.so.2 (0x00007f503ee1e000)\n"
    )
    assert library_file(text, BLAS_LIBRARY, "/mkl", str) == "/mkl"


def test_a_library_gets_its_plain_names_back(tmp_path):
    (tmp_path / "wheel.c").write_text("double scipy_ddot_(void) { return 42.0; }\n")
    (tmp_path / "main.c").write_text(
        "double ddot_(void);\nint main(void) { return ddot_() == 42.0 ? 7 : 1; }\n"
    )
    names = ["scipy_ddot_", "openblas_get_config"]
    (tmp_path / "jumps.s").write_text(jumps(names, platform.machine()))
    compiler = shutil.which("cc") or "gcc"
    for command in (
        "-shared -fPIC -Wl,-soname,libwheel.so -o libwheel.so wheel.c",
        "-shared -Wl,-soname,libplain.so -o libplain.so jumps.s ./libwheel.so -Wl,-rpath,$ORIGIN",
        "-o main main.c ./libplain.so -Wl,-rpath,$ORIGIN",
    ):
        subprocess.run([compiler, *command.split()], cwd=tmp_path, check=True)
    assert subprocess.run([tmp_path / "main"], check=False).returncode == 7


def test_a_processor_without_a_known_jump_is_told():
    with pytest.raises(ClustergateError, match=r"riscv64.*leave 'externals' out"):
        jumps(["scipy_ddot_"], "riscv64")
