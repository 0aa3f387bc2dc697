"""Through which network a launch went. The text of /proc/net/dev is that of a virtual machine."""

from clustergate.machine.traffic import beside_the_fabric, read_sent, sent_between

NET_DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo
    lo: 61184163   52141    0    0    0     0          0         0 61184163   52141    0    0    0
  eth0:532908471  403120    0    0    0     0          0         0  9013370  103847    0    0    0
   ib0:      100       1    0    0    0     0          0         0      200       2    0    0    0
"""


def test_kernel_devices_and_bypassing_adapters_counted(tmp_path):
    (tmp_path / "proc" / "net").mkdir(parents=True)
    (tmp_path / "proc" / "net" / "dev").write_text(NET_DEV)
    for port, words in (("1", "1000"), ("2", "500")):
        counters = tmp_path / "sys/class/infiniband/mlx5_0/ports" / port / "counters"
        counters.mkdir(parents=True)
        (counters / "port_xmit_data").write_text(f"{words}\n")
    assert read_sent(tmp_path) == {"eth0": 9013370, "ib0": 200, "mlx5_0": 6000}


def test_a_machine_that_shows_nothing_sent_nothing(tmp_path):
    assert read_sent(tmp_path) == {}


def test_only_what_was_sent_meanwhile_counts():
    before, after = {"eth0": 100, "ib0": 5}, {"eth0": 300, "ib0": 5, "mlx5_0": 7}
    assert sent_between(before, after) == {"eth0": 200, "mlx5_0": 7}


def test_a_launch_through_another_network_than_the_fabric_is_told():
    told = beside_the_fabric({"eth0": 41_000_000}, ["mlx5_0"])
    assert "sent 41.0 MB through eth0 and 0.0 MB through mlx5_0" in told
    assert "fell back to another network" in told


def test_tcp_over_the_fabric_is_no_fabric_either():
    assert "through ib0" in beside_the_fabric({"ib0": 9_000_000, "mlx5_0": 9_100_000}, ["mlx5_0"])


def test_a_little_traffic_beside_the_fabric_is_none_of_the_launch():
    assert beside_the_fabric({"eth0": 900_000}, ["mlx5_0"]) == ""
    assert beside_the_fabric({"eth0": 4_000_000, "mlx5_0": 90_000_000}, ["mlx5_0"]) == ""
    assert beside_the_fabric({"eth0": 90_000_000}, ["eth0"]) == ""
