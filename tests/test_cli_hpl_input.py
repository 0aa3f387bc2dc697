import pytest

from clustergate import cli
from clustergate.benchmarks.hpl import dat_file
from clustergate.benchmarks.hpl.sizing import predict_hpl_seconds
from clustergate.cli import hpl_input
from clustergate.machine.node import read_node

WESTMERE = "--nodes 512 --cores-per-node 12 --memory-per-node 24GiB"
SMALL = "--cores-per-node 2 --memory-per-node 1GiB"


@pytest.fixture
def hpl_input_command(monkeypatch, capsys):
    monkeypatch.setattr(cli, "COMMANDS", ("hpl-input",))

    def run(line):
        status = cli.main(["hpl-input", *line.split()])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return run


@pytest.fixture
def this_node(monkeypatch, tmp_path):
    """A node with 4 CPUs on 2 cores and 8 GiB, of which a cgroup leaves 2 GiB."""
    files = {
        "proc/meminfo": f"MemTotal: {8 * 2**20} kB\nMemAvailable: {7 * 2**20} kB\n",
        "proc/self/status": "Cpus_allowed_list:\t0-3\n",
        "proc/self/cgroup": "0::/job\n",
        "proc/self/mountinfo": "25 20 0:22 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        "sys/fs/cgroup/job/memory.max": f"{2 * 2**30}\n",
        "sys/devices/system/cpu/online": "0-3\n",
    } | {
        f"sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list": f"{cpu % 2},{cpu % 2 + 2}\n"
        for cpu in range(4)
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(hpl_input, "read_node", lambda: read_node(tmp_path))


@pytest.fixture
def silent_node(monkeypatch, tmp_path):
    """A node that tells nothing of itself."""
    monkeypatch.setattr(hpl_input, "read_node", lambda: read_node(tmp_path))


def test_the_published_westmere_file(hpl_input_command):
    status, out, err = hpl_input_command(f"{WESTMERE} --n-fraction 0.92 --round nb-lcm --nb 192")
    assert status == 0
    file = dat_file.parse(out).input
    assert file.n_values == (1179648,)
    assert file.nb_values == (192,)
    assert (file.p_values, file.q_values) == ((64,), (96,))
    assert "6144 processes on 512 nodes, 12 on each; grid 64 x 96" in err
    assert "11132555231232 bytes, 84.4 % of 13194139533312" in err


def test_lists_make_a_sweep(hpl_input_command):
    status, out, err = hpl_input_command(f"{SMALL} -n 960,1920 --nb 96,192 --gflops 10")
    assert status == 0
    file = dat_file.parse(out).input
    assert (file.n_values, file.nb_values) == ((960, 1920), (96, 192))
    once = predict_hpl_seconds(960, 10) + predict_hpl_seconds(1920, 10)
    assert f"predicted run time at 10 Gflop/s: {2 * once:.1f} s (0:00:01) for 4 solves" in err


def test_defaults_describe_this_node(hpl_input_command, this_node):
    status, out, err = hpl_input_command("")
    assert status == 0
    file = dat_file.parse(out).input
    # Physical cores, and 0.8 of what the cgroup leaves: the root of 0.1 * 2^31 is 14654.3.
    assert (file.p_values, file.q_values) == ((1,), (2,))
    assert file.n_values == (14592,)
    assert "1 x 2147483648, this node's, by memory.max of cgroup /job" in err
    assert "predicted" not in err


def test_more_nodes_like_this_one(hpl_input_command, this_node):
    _, out, err = hpl_input_command("--nodes 6 --memory-fraction 0.5")
    file = dat_file.parse(out).input
    assert (file.p_values, file.q_values) == ((3,), (4,))
    assert file.n_values == (28224,)
    assert "12 processes on 6 nodes, 2 on each" in err


def test_a_node_that_tells_nothing(hpl_input_command, silent_node):
    status, out, err = hpl_input_command("--memory-per-node 1GiB")
    assert (status, out) == (2, "")
    assert err == "clustergate: the cores of this node are unknown; give --cores-per-node\n"
    status, out, err = hpl_input_command("--cores-per-node 4")
    assert (status, out) == (2, "")
    assert err == "clustergate: the memory of this node is unknown; give --memory-per-node\n"


def test_ranks_are_not_always_cores(hpl_input_command):
    _, out, _ = hpl_input_command("--cores-per-node 64 --ranks-per-node 8 --memory-per-node 64GiB")
    file = dat_file.parse(out).input
    assert (file.p_values, file.q_values) == ((2,), (4,))


def test_time_budget_for_all_solves_of_the_file(hpl_input_command):
    _, out, err = hpl_input_command(
        "--cores-per-node 2 --memory-per-node 24GiB --time-budget 10m --gflops 200 --nb 96,192"
    )
    (n,) = dat_file.parse(out).input.n_values
    assert 2 * predict_hpl_seconds(n, 200) <= 600 < 2 * predict_hpl_seconds(n + 192, 200)
    assert "for 2 solves" in err


def test_memory_caps_a_generous_time_budget(hpl_input_command):
    _, by_memory, _ = hpl_input_command(SMALL)
    _, by_time, _ = hpl_input_command(f"{SMALL} --time-budget 10h --gflops 200")
    assert by_time == by_memory


def test_hpccinf(hpl_input_command):
    status, out, _ = hpl_input_command(f"{SMALL} --format hpccinf")
    assert status == 0
    assert len(out.splitlines()) == 36


def test_a_prime_gets_a_sentence(hpl_input_command):
    status, out, err = hpl_input_command("--cores-per-node 13 --memory-per-node 16GiB")
    assert status == 0
    assert dat_file.parse(out).input.q_values == (13,)
    assert "13 is a prime number" in err
    assert "12 processes make 3 x 4" in err


@pytest.mark.parametrize("given", ["--p 1 --q 8", "--p 1", "--q 8"])
def test_a_grid_of_ones_own(hpl_input_command, given):
    _, out, err = hpl_input_command(f"--cores-per-node 8 --memory-per-node 16GiB {given}")
    file = dat_file.parse(out).input
    assert (file.p_values, file.q_values) == ((1,), (8,))
    assert "8 processes also make 2 x 4" in err


def test_a_grid_that_leaves_processes_idle(hpl_input_command):
    status, _, err = hpl_input_command("--cores-per-node 7 --memory-per-node 1GiB --p 2 --q 3")
    assert status == 0
    assert "1 of 7 processes will be idle" in err


def test_remarks_about_a_size_of_ones_own(hpl_input_command):
    status, _, err = hpl_input_command(f"{SMALL} -n 200")
    assert status == 0
    assert "N=200 is not a multiple of NB=192" in err
    assert "with N=200 and NB=192 some processes hold no part of the matrix" in err


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("-n 960 --time-budget 10m", "--time-budget has no effect beside it"),
        ("-n 960 --round nb", "--round has no effect beside it"),
        ("-n 12000", "N=12000 needs 1152000000 bytes for its matrix, and 1073741824 are"),
        ("--memory-per-node 24G", "write GiB (powers of 1024) or GB (powers of 1000)"),
        ("--memory-per-node 100kB", "are too few for N=192"),
        ("--memory-fraction 1.2", "must be above 0 and at most 1, not 1.2"),
        ("--n-fraction 0", "must be above 0 and at most 1, not 0.0"),
        ("--time-budget 10m", "--time-budget needs --gflops"),
        ("--time-budget soon --gflops 1", "'soon' is not a length of time"),
        ("--time-budget 0s --gflops 1", "time budget in seconds must be positive"),
        ("--gflops 0", "rate in Gflop/s must be positive"),
        ("--cores-per-node 4999", "is too small for a 1 x 4999 grid"),
        ("--p 3", "--p 3 does not divide the 2 processes"),
        ("--p 2 --q 2", "a 2 x 2 grid needs 4 processes, and there are 2"),
    ],
)
def test_bad_values_are_one_sentence(hpl_input_command, line, sentence):
    status, out, err = hpl_input_command(f"{SMALL} {line}")
    assert (status, out) == (2, "")
    assert sentence in err
    assert err.startswith("clustergate: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("-n 0", "argument -n: must be a whole number above 0, not '0'"),
        ("--nodes 0", "argument --nodes: must be a whole number above 0, not '0'"),
        ("--nodes two", "argument --nodes: must be a whole number above 0, not 'two'"),
        ("--nb 96,", "argument --nb: must be a whole number above 0, not ''"),
        ("--p 0", "argument --p: must be a whole number above 0, not '0'"),
        ("--memory-fraction 80%", "argument --memory-fraction: invalid float value: '80%'"),
        ("--memory-fraction 0.8 --n-fraction 0.9", "not allowed with argument --memory-fraction"),
        ("--round up", "argument --round: invalid choice: 'up'"),
        ("--format HPL", "argument --format: invalid choice: 'HPL'"),
    ],
)
def test_a_value_that_is_none_names_its_option(monkeypatch, capsys, line, sentence):
    monkeypatch.setattr(cli, "COMMANDS", ("hpl-input",))
    with pytest.raises(SystemExit) as ended:
        cli.main(["hpl-input", *f"{SMALL} {line}".split()])
    assert ended.value.code == 2
    assert sentence in capsys.readouterr().err
