import pytest

from clustergate.imb_command import ImbSettingError, ImbSettings, imb_arguments, sizes_file


def test_the_full_communicator_is_the_smallest_group():
    arguments = imb_arguments(ImbSettings(benchmarks=["PingPong", "Bcast"], smallest_group=4))
    assert arguments == ["PingPong", "Bcast", "-npmin", "4", "-msglog", "0:22"]


def test_named_sizes_come_from_a_file():
    settings = ImbSettings(benchmarks=[], smallest_group=2, sizes=(0, 8, 4096))
    assert imb_arguments(settings) == ["-npmin", "2", "-msglen", "message-sizes.txt"]
    assert sizes_file(settings.sizes) == "0\n8\n4096\n"


def test_messages_of_64_mebibytes_on_request():
    assert "0:26" in imb_arguments(ImbSettings([], smallest_group=2, largest_bytes=1 << 26))


def test_a_largest_size_between_powers_of_two_is_refused():
    with pytest.raises(ImbSettingError, match="power of two"):
        imb_arguments(ImbSettings([], smallest_group=2, largest_bytes=1000))


def test_every_setting_becomes_imbs_option():
    settings = ImbSettings(
        benchmarks=[],
        smallest_group=2,
        repetitions=300,
        volume_mb=20,
        seconds=0.02,
        off_cache="-1",
        root_shift="on",
        sync="on",
        map="2x1",
        iter_policy="off",
        memory_gb=0.5,
    )
    told = " ".join(imb_arguments(settings))
    for option in (
        "-iter 300,20",
        "-time 0.02",
        "-off_cache -1",
        "-root_shift on",
        "-sync on",
        "-map 2x1",
        "-iter_policy off",
        "-mem 0.5",
    ):
        assert option in told
