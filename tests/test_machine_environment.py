import os
import re
import subprocess

import pytest

from clustergate.machine.environment import (
    EFFECTS,
    HIDDEN,
    clean_environment,
    cleaning_script,
    describe_removed,
    read_removed,
)

ORDINARY = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/home/operator",
    "USER": "operator",
    "TMPDIR": "/scratch",
    "https_proxy": "http://proxy:3128",
    "SSH_AUTH_SOCK": "/run/agent",
    "MODULEPATH": "/usr/share/modulefiles",
    "PYTHONUNBUFFERED": "1",
    "MPI_HOME": "/opt/mpi",
    "OLDPWD": "/",
}


def test_an_ordinary_environment_stays_but_for_the_locale() -> None:
    clean = clean_environment(ORDINARY)
    assert clean.environment == ORDINARY | {"LANG": "C", "LC_ALL": "C", "LC_NUMERIC": "C"}
    assert clean.removed == {}


def test_a_locale_with_a_decimal_comma_is_replaced() -> None:
    clean = clean_environment({"LC_ALL": "de_DE.UTF-8", "LC_NUMERIC": "de_DE", "LC_TIME": "de_DE"})
    assert clean.environment == {"LANG": "C", "LC_ALL": "C", "LC_NUMERIC": "C", "LC_TIME": "de_DE"}
    assert clean.removed == {}


@pytest.mark.parametrize(
    "name",
    [
        "OPENBLAS_CORETYPE",
        "OPENBLAS_NUM_THREADS",
        "OMP_NUM_THREADS",
        "GOMP_CPU_AFFINITY",
        "KMP_AFFINITY",
        "INTEL_ISA_DISABLE",
        "TCM_ENABLE",
        "YAKSA_ENV_MAX_NESTING_LEVEL",
        "MKL_NUM_THREADS",
        "BLIS_ARCH_TYPE",
        "GOTO_NUM_THREADS",
        "I_MPI_FABRICS",
        "FI_PROVIDER",
        "UCX_TLS",
        "MPICH_CC",
        "MPIR_CVAR_CH4_NETMOD",
        "HYDRA_BINDING",
        "MV2_USE_SHARED_MEM",
        "OMPI_MCA_btl",
        "PMIX_MCA_gds",
        "PMIX_RANK",
        "PMI_RANK",
        "PRTE_MCA_hwloc_default_binding_policy",
        "MALLOC_ARENA_MAX",
        "GLIBC_TUNABLES",
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "PYTHONPATH",
        "CFLAGS",
        "SLURM_CPU_BIND",
    ],
)
def test_what_can_change_a_figure_is_removed_and_explained(name: str) -> None:
    clean = clean_environment({**ORDINARY, name: "value"})
    assert set(clean.removed) == {name}
    assert name not in clean.environment
    (sentence,) = describe_removed(clean.removed)
    assert re.match(rf"{name}(=value)? was set in the shell and was removed: it would ", sentence)


def test_the_particular_effect_is_named_before_the_general_one() -> None:
    (sentence,) = describe_removed({"OPENBLAS_CORETYPE": "Haswell"})
    assert sentence == (
        "OPENBLAS_CORETYPE=Haswell was set in the shell and was removed: it would choose other "
        "BLAS kernels; Haswell's on a machine with AVX-512 left 40 % of the rate"
    )


def test_no_effect_hides_behind_a_more_general_one() -> None:
    for name in (pattern for pattern in EFFECTS if "*" not in pattern):
        (sentence,) = describe_removed({name: "1"})
        assert sentence.endswith(EFFECTS[name])


def test_the_allocation_survives_within_a_job_only() -> None:
    stray = {"SLURM_CPU_BIND": "none", "SLURM_NNODES": "2"}
    assert set(clean_environment(stray).removed) == set(stray)
    job = {"SLURM_JOB_ID": "17", **stray}
    clean = clean_environment(job)
    assert set(clean.removed) == {"SLURM_CPU_BIND"}
    assert clean.environment["SLURM_NNODES"] == "2"


def test_permission_to_run_as_root_changes_no_figure() -> None:
    permission = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    clean = clean_environment(permission)
    assert clean.removed == {}
    assert clean.environment["OMPI_ALLOW_RUN_AS_ROOT"] == "1"


def test_the_module_systems_account_goes_with_the_library_path() -> None:
    loaded = {
        "LOADEDMODULES": "gcc/13:openmpi/5",
        "_LMFILES_": "/m/gcc/13:/m/openmpi/5",
        "_ModuleTable001_": "X01vZHVsZVRhYmxl",
        "__LMOD_REF_COUNT_PATH": "/usr/bin:1",
        "LD_LIBRARY_PATH": "/opt/openmpi/lib",
    }
    clean = clean_environment(loaded)
    assert set(clean.removed) == set(loaded)
    told = [sentence.partition(" ")[0] for sentence in describe_removed(clean.removed)]
    assert told == ["LD_LIBRARY_PATH", "LOADEDMODULES"]


@pytest.mark.parametrize(
    ("libraries", "told"),
    [
        (["MPICH Version:      5.0.2\nMPICH Device: ch4"], []),
        (["MPICH Version:      5.0.2", "Open MPI v5.0.11, package: x"], ["OMPI_MCA_btl"]),
        (["Intel(R) MPI Library 2021.18.1 for Linux* OS"], ["I_MPI_PIN"]),
        (["MVAPICH2 Version:     2.3.7"], ["MV2_ENABLE_AFFINITY"]),
        # Who knows what another vendor's reads.
        (["Spectrum MPI v10"], ["I_MPI_PIN", "MV2_ENABLE_AFFINITY", "OMPI_MCA_btl"]),
        (None, ["I_MPI_PIN", "MV2_ENABLE_AFFINITY", "OMPI_MCA_btl"]),
    ],
)
def test_a_variable_of_another_vendors_mpi_is_told_where_that_ran(
    libraries: list[str] | None, told: list[str]
) -> None:
    """A machine whose shells set I_MPI_* told it in each summary of MPICH."""
    names = ("I_MPI_PIN", "MV2_ENABLE_AFFINITY", "OMPI_MCA_btl", "FI_PROVIDER")
    sentences = describe_removed(dict.fromkeys(names, "1"), libraries=libraries)
    assert sorted(one.split("=")[0].split(" ")[0] for one in sentences) == sorted(
        [*told, "FI_PROVIDER"]
    )


def test_variables_without_a_value_are_removed_in_silence() -> None:
    clean = clean_environment({"LD_LIBRARY_PATH": ""})
    assert clean.removed == {"LD_LIBRARY_PATH": ""}
    assert describe_removed(clean.removed) == []


SECRET = "eyJhbGciOiJIUzI1NiJ9.eyJzdW4iOiJyb290In0"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SLURM_JWT", SECRET),
        ("SLURM_NNODES", "3"),
        ("LD_LIBRARY_PATH", "/home/somebody/lib"),
        ("OMPI_MCA_some_token", "a"),
        ("MV2_USE_AUTH_KEY", "1"),
        # Known to be harmless by their names, and yet not by what stands in them.
        ("OMP_NUM_THREADS", SECRET),
        ("OMP_NUM_THREADS", "glpat-1234"),
        ("UCX_TLS", "https://user:word@host/"),
        ("UCX_NET_DEVICES", "mlx5_0:1," * 20),
    ],
)
def test_only_names_are_told_of_what_may_hold_a_secret(name: str, value: str) -> None:
    clean = clean_environment({name: value})
    assert clean.removed == {name: HIDDEN}
    told = describe_removed(clean.removed)
    # So does a record of an earlier version, which holds the value.
    assert told == describe_removed({name: value})
    assert told[0].startswith(f"{name} was set in the shell and was removed: it would ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OMP_NUM_THREADS", "4"),
        ("OPENBLAS_CORETYPE", "Haswell"),
        ("I_MPI_PIN_PROCESSOR_LIST", "0-3,8-11"),
        ("KMP_AFFINITY", "granularity=fine,compact,1,0"),
        ("OMPI_MCA_btl", "self,tcp"),
        ("UCX_NET_DEVICES", "mlx5_0:1,mlx5_1:1"),
    ],
)
def test_harmless_values_are_told(name: str, value: str) -> None:
    assert clean_environment({name: value}).removed == {name: value}
    assert describe_removed({name: value})[0].startswith(f"{name}={value} was set in the shell")


def test_a_removed_variable_nobody_knows() -> None:
    (sentence,) = describe_removed({"SITE_TUNING": "1"})
    assert sentence.endswith("it would change what is measured")


def test_the_inherited_environment_is_left_as_it_was() -> None:
    inherited = {"LANG": "de_DE", "OMP_NUM_THREADS": "4"}
    clean_environment(inherited)
    assert inherited == {"LANG": "de_DE", "OMP_NUM_THREADS": "4"}


def test_the_shell_lines_remove_what_the_function_removes(tmp_path):
    inherited = {
        "PATH": os.environ["PATH"],
        "OPENBLAS_CORETYPE": "Haswell",
        "OMP_NUM_THREADS": "7",
        "UCX_TLS": "two\nlines = 'quoted'",
        "OMP_PLACES": SECRET,
        "SLURM_JWT": SECRET,
        "UCX_LOG_FILE": SECRET,
        "LD_BIND_NOW": "",
        "LD_AUDIT": "",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "SLURM_NTASKS": "3",
        "SLURM_CPU_FREQ_REQ": "Low",
        "SRUN_CPUS_PER_TASK": "2",
        "HARMLESS": "stays",
        "LANG": "de_DE.UTF-8",
    }
    script = f"set -e\n{cleaning_script('removed')}\nexec env -0"
    for allocation in ({}, {"SLURM_JOB_ID": "4711"}):
        environment = {**inherited, **allocation}
        ended = subprocess.run(
            ["bash", "-c", script],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        cleaned = clean_environment(environment)
        record = tmp_path / "removed"
        assert read_removed(record) == cleaned.removed
        assert SECRET not in record.read_text()
        assert read_removed(tmp_path / "none") == {}
        left = dict(entry.split("=", 1) for entry in ended.stdout.split("\0") if entry)
        for shells_own in ("PWD", "SHLVL", "_"):
            left.pop(shells_own, None)
        assert left == cleaned.environment


@pytest.mark.parametrize(
    ("blas", "told"),
    [
        (["/opt/lib/libscipy_openblas64_.so"], []),
        # No BLAS at all, one that may be any, and nobody knows.
        ([], []),
        (["/usr/lib/libblas.so.3"], ["NVPL_BLAS_DEBUG_CPU_TYPE"]),
        (["/usr/lib/libflexiblas.so.3", "/opt/libopenblas.so"], ["NVPL_BLAS_DEBUG_CPU_TYPE"]),
        (["/opt/libnvpl_blas_lp64_seq.so.0"], ["NVPL_BLAS_DEBUG_CPU_TYPE"]),
        (None, ["NVPL_BLAS_DEBUG_CPU_TYPE"]),
    ],
)
def test_a_variable_of_a_blas_that_no_rank_has_is_not_told(blas, told):
    """A machine's profile set it, and every summary told it."""
    sentences = describe_removed({"NVPL_BLAS_DEBUG_CPU_TYPE": "1", "OMP_NUM_THREADS": "3"}, blas)
    assert [sentence.partition(" ")[0].partition("=")[0] for sentence in sentences] == [
        *told,
        "OMP_NUM_THREADS",
    ]
