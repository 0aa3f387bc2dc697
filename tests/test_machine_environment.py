import os
import subprocess

import pytest

from clustergate.machine.environment import (
    EFFECTS,
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
    assert clean.kept == {}


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
    assert clean.removed == {name: "value"}
    assert name not in clean.environment
    (sentence,) = describe_removed(clean.removed)
    assert sentence.startswith(f"{name}=value was set in the shell and was removed: it would ")


def test_the_particular_effect_is_named_before_the_general_one() -> None:
    (sentence,) = describe_removed({"OPENBLAS_CORETYPE": "Haswell"})
    assert sentence == (
        "OPENBLAS_CORETYPE=Haswell was set in the shell and was removed: it would choose other "
        "BLAS kernels; with Haswell's on a machine with AVX-512 HPL fell to 40 %"
    )


def test_no_effect_hides_behind_a_more_general_one() -> None:
    for name in (pattern for pattern in EFFECTS if "*" not in pattern):
        (sentence,) = describe_removed({name: "1"})
        assert sentence.endswith(EFFECTS[name])


def test_declared_variables_are_kept_and_said_to_be() -> None:
    inherited = {**ORDINARY, "FI_PROVIDER": "verbs", "FI_MR_CACHE": "1", "UCX_TLS": "rc"}
    clean = clean_environment(inherited, keep=("FI_*", "HOME"))
    assert clean.kept == {"FI_PROVIDER": "verbs", "FI_MR_CACHE": "1"}
    assert clean.removed == {"UCX_TLS": "rc"}
    assert clean.environment["FI_PROVIDER"] == "verbs"


def test_the_allocation_survives_within_a_job_only() -> None:
    stray = {"SLURM_CPU_BIND": "none", "SLURM_NNODES": "2"}
    assert clean_environment(stray).removed == stray
    job = {"SLURM_JOB_ID": "17", **stray}
    clean = clean_environment(job)
    assert clean.removed == {}
    assert clean.kept == job
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
    assert clean.removed == loaded
    told = [sentence.partition("=")[0] for sentence in describe_removed(clean.removed)]
    assert told == ["LD_LIBRARY_PATH", "LOADEDMODULES"]


def test_variables_without_a_value_are_removed_in_silence() -> None:
    clean = clean_environment({"LD_LIBRARY_PATH": ""})
    assert clean.removed == {"LD_LIBRARY_PATH": ""}
    assert describe_removed(clean.removed) == []


def test_long_and_broken_values_are_told_in_one_short_line() -> None:
    (sentence,) = describe_removed({"LD_LIBRARY_PATH": "/opt/a\n" + ":/opt/b" * 100})
    assert "\n" not in sentence
    assert sentence.startswith("LD_LIBRARY_PATH=/opt/a :/opt/b:/opt/b")
    assert "… was set" in sentence
    assert len(sentence) < 200


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
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "SLURM_NTASKS": "3",
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
        assert read_removed((tmp_path / "removed").read_text()) == cleaned.removed
        left = dict(entry.split("=", 1) for entry in ended.stdout.split("\0") if entry)
        for shells_own in ("PWD", "SHLVL", "_"):
            left.pop(shells_own, None)
        assert left == cleaned.environment
