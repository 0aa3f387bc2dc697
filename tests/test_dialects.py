import pytest

from clustergate.core.model import ClustergateError, Launch
from clustergate.launch.dialects import (
    LaunchRoute,
    Layout,
    hostfile_dialect,
    launch_options,
    launcher_environment,
    srun_environment,
    srun_options,
)
from clustergate.launch.hostfiles import DIALECTS
from clustergate.launch.transports import transport_note


def test_hydra_is_told_ranks_per_node_and_cores():
    options = launch_options("hydra", Layout(ranks=8, ranks_per_node=4, cores_per_rank=2))
    assert options == ["-n", "8", "-ppn", "4", "-bind-to", "core:2"]


def test_intel_pins_by_core_and_not_by_hardware_thread():
    options = launch_options("intel-hydra", Layout(ranks=4, ranks_per_node=2))
    assert options[:4] == ["-n", "4", "-ppn", "2"]
    assert "I_MPI_PIN_CELL" in options
    assert options[options.index("I_MPI_PIN_DOMAIN") + 1] == "1:compact"


def test_mvapich2_leaves_the_binding_to_its_launcher():
    options = launch_options("mvapich2", Layout(ranks=4, ranks_per_node=2, cores_per_rank=2))
    assert options[:6] == ["-n", "4", "-ppn", "2", "-bind-to", "core:2"]
    assert options[6:] == ["-genv", "MV2_ENABLE_AFFINITY", "0"]


def test_open_mpi_is_told_processing_elements():
    options = launch_options("openmpi", Layout(ranks=4, ranks_per_node=2, cores_per_rank=3))
    assert options == ["-n", "4", "--map-by", "ppr:2:node:PE=3", "--bind-to", "core"]


def test_hydra_reaches_the_nodes_of_a_hostfile_over_ssh():
    layout = Layout(ranks=4, ranks_per_node=2, bind=False)
    options = launch_options("hydra", layout, LaunchRoute("/job/hostfile"))
    assert options == ["-launcher", "ssh", "-f", "/job/hostfile", "-n", "4", "-ppn", "2"]
    assert launch_options("intel-hydra", layout, LaunchRoute("/job/hostfile"))[:8] == options
    assert launch_options("mvapich2", layout, LaunchRoute("/job/hostfile"))[:8] == options


def test_open_mpi_exports_named_variables_without_scheduler():
    """Open MPI takes named variables to other nodes and asks no scheduler."""
    way = LaunchRoute("/job/hostfile", {"LD_LIBRARY_PATH": "/lib", "OMP_NUM_THREADS": "1"})
    options = launch_options("openmpi", Layout(ranks=2, ranks_per_node=1, bind=False), way)
    assert options == [
        *("--hostfile", "/job/hostfile", "--prtemca", "plm", "ssh", "-n", "2"),
        *("-x", "LD_LIBRARY_PATH", "-x", "OMP_NUM_THREADS"),
        *("--map-by", "ppr:1:node", "--bind-to", "none"),
    ]


def test_mpirun_rsh_exports_variables_and_leaves_binding():
    """mpirun_rsh is told variables and leaves the binding to the library."""
    way = LaunchRoute("/job/hostfile", {"OMP_NUM_THREADS": "2"})
    options = launch_options("mpirun_rsh", Layout(4, 2, cores_per_rank=2), way)
    assert options == [
        *("-np", "4", "-hostfile", "/job/hostfile", "OMP_NUM_THREADS=2"),
        *("MV2_ENABLE_AFFINITY=1", "MV2_CPU_BINDING_POLICY=hybrid"),
        *("MV2_HYBRID_BINDING_POLICY=compact", "MV2_THREADS_PER_PROCESS=2"),
    ]
    found = launch_options(
        "mpirun_rsh", Layout(4, 2), LaunchRoute("/job/hostfile", {"PATH": "/mpi/bin"})
    )
    assert "PATH=/mpi/bin:/usr/local/bin:/usr/bin:/bin" in found
    assert launch_options("mpirun_rsh", Layout(4, 2), way)[-2:] == [
        "MV2_ENABLE_AFFINITY=1",
        "MV2_CPU_BINDING_POLICY=bunch",
    ]
    unbound = launch_options("mpirun_rsh", Layout(4, 2, bind=False), way)
    assert unbound[-1] == "MV2_ENABLE_AFFINITY=0"


def test_mpirun_rsh_value_stays_one_word_in_the_shell():
    """A value stays one word in the shell that mpirun rsh writes it into."""
    way = LaunchRoute("/job/hostfile", {"LIST": "a b;c", "EMPTY": ""})
    options = launch_options("mpirun_rsh", Layout(2, 1), way)
    assert {"LIST='a b;c'", "EMPTY=''"} < set(options)


@pytest.mark.parametrize(
    ("dialect", "pmi"),
    [("hydra", "pmi2"), ("intel-hydra", "pmi2"), ("mvapich2", "pmi2"), ("openmpi", "pmix")],
)
def test_srun_offers_what_the_library_understands(dialect, pmi):
    assert srun_options(dialect, Layout(2, 1))[0] == f"--mpi={pmi}"
    assert srun_options(dialect, Layout(2, 1), "cray_shasta")[0] == "--mpi=cray_shasta"


def test_srun_is_told_nodes_ranks_cores_and_binding():
    options = srun_options("hydra", Layout(ranks=8, ranks_per_node=4, cores_per_rank=2))
    assert {"--nodes=2", "--ntasks=8", "--ntasks-per-node=4", "--cpus-per-task=2"} < set(options)
    assert {"--cpu-bind=cores", "--threads-per-core=1"} < set(options)
    assert "--cpu-bind=none" in srun_options("hydra", Layout(2, 1, bind=False))


def test_only_one_of_library_and_srun_binds():
    assert srun_environment("intel-hydra") == {"I_MPI_PIN": "0"}
    assert srun_environment("mvapich2") == {"MV2_ENABLE_AFFINITY": "0"}
    assert srun_environment("openmpi") == srun_environment("hydra") == {}


@pytest.mark.parametrize("dialect", ["hydra", "intel-hydra", "mpirun_rsh", "mvapich2", "openmpi"])
def test_every_launcher_has_a_form_of_hostfile(dialect):
    assert hostfile_dialect(dialect) in DIALECTS


@pytest.mark.parametrize("dialect", ["hydra", "intel-hydra", "mvapich2", "openmpi"])
def test_an_unbound_layout_asks_for_no_core(dialect):
    options = launch_options(dialect, Layout(ranks=2, ranks_per_node=2, bind=False))
    assert not any("core" in option for option in options)


def test_the_last_node_has_what_is_left():
    assert Layout(ranks=40, ranks_per_node=6).nodes == 7
    assert Layout(ranks=42, ranks_per_node=6).nodes == 7
    assert launch_options("hydra", Layout(40, 6))[:4] == ["-n", "40", "-ppn", "6"]


def test_an_unknown_dialect_lists_the_known_ones():
    with pytest.raises(ClustergateError, match="known: hydra, intel-hydra, mpirun_rsh, mvapich2"):
        launch_options("ibrun", Layout(ranks=2, ranks_per_node=2))


@pytest.mark.parametrize(
    ("ranks", "per_node", "message"),
    [(0, 1, "at least 1"), (2, 0, "at least 1")],
)
def test_a_layout_that_cannot_be_is_refused(ranks, per_node, message):
    with pytest.raises(ClustergateError, match=message):
        Layout(ranks=ranks, ranks_per_node=per_node)


def test_only_open_mpi_has_to_be_talked_into_root():
    assert set(launcher_environment("openmpi", as_root=True)) == {
        "OMPI_ALLOW_RUN_AS_ROOT",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
    }
    assert launcher_environment("openmpi", as_root=False) == {}
    assert launcher_environment("hydra", as_root=True) == {}


def test_the_transport_between_nodes_is_told():
    chosen = {"MPIR_CVAR_CH4_NETMOD": "ofi", "PATH": "/usr/bin", "FI_PROVIDER": "tcp"}
    counted = [Launch(k, 0.0, 1.0, node={"sent_bytes": {"eth0": 1.5e6, "ib0": 7}}) for k in (0, 1)]
    assert transport_note(chosen, 2, counted) == (
        "transport between nodes: MPIR_CVAR_CH4_NETMOD=ofi, FI_PROVIDER=tcp (site config); "
        "the first node sent 3.0 MB through eth0, 0.0 MB through ib0"
    )
    assert transport_note({}, 2, [Launch(0, 0.0, 1.0)]) == (
        "transport between nodes: the MPI library's own choice; the first node sent nothing that a "
        "counter shows"
    )
    assert transport_note({}, 2, []) == "transport between nodes: the MPI library's own choice"
    assert transport_note(chosen, 1, counted) == ""
