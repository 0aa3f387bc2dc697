import pytest

from clustergate.stacks.dialects import (
    Layout,
    LayoutError,
    launch_options,
    launcher_environment,
)


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


@pytest.mark.parametrize("dialect", ["hydra", "intel-hydra", "mvapich2", "openmpi"])
def test_an_unbound_layout_asks_for_no_core(dialect):
    options = launch_options(dialect, Layout(ranks=2, ranks_per_node=2, bind=False))
    assert not any("core" in option for option in options)


def test_an_unknown_dialect_lists_the_known_ones():
    with pytest.raises(LayoutError, match="known: hydra, intel-hydra, mvapich2, openmpi"):
        launch_options("ibrun", Layout(ranks=2, ranks_per_node=2))


@pytest.mark.parametrize(
    ("ranks", "per_node", "message"),
    [(3, 2, "do not fill"), (0, 1, "at least 1"), (2, 0, "at least 1")],
)
def test_a_layout_that_cannot_be_is_refused(ranks, per_node, message):
    with pytest.raises(LayoutError, match=message):
        Layout(ranks=ranks, ranks_per_node=per_node)


def test_only_open_mpi_has_to_be_talked_into_root():
    assert set(launcher_environment("openmpi", as_root=True)) == {
        "OMPI_ALLOW_RUN_AS_ROOT",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
    }
    assert launcher_environment("openmpi", as_root=False) == {}
    assert launcher_environment("hydra", as_root=True) == {}
