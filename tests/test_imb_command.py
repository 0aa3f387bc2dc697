import pytest

from clustergate.benchmarks.descriptor import CannotRun
from clustergate.benchmarks.imb.command import (
    ImbSettings,
    buffer_memory_gb,
    imb_arguments,
    refuse_unknown,
    sizes_file,
)


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
    with pytest.raises(CannotRun, match="power of two"):
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


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        # IMB runs with its default policy, and with 2.5 MB, and says nothing.
        (
            {"iter_policy": "dynamical"},
            "iter_policy must be dynamic, multiple_np, auto or off",
        ),
        ({"off_cache": "2.5MB"}, "off_cache must be -1, a size of the last cache"),
        ({"off_cache": "0"}, "off_cache"),
        ({"root_shift": "yes"}, "root_shift must be on or off, not 'yes'"),
        ({"sync": "maybe"}, "sync must be on or off"),
        ({"map": "2*1"}, "map must be a grid of processes"),
        ({"map": "3x1", "ranks": 2}, "a map of 3x1 needs 3 processes and there are 2"),
        ({"seconds": -1.0}, "time must be positive, not -1"),
        ({"seconds": float("nan")}, "time must be positive"),
        ({"memory_gb": 0.0}, "memory_gb must be positive"),
    ],
)
def test_what_an_option_does_not_take_is_refused(setting, sentence):
    with pytest.raises(CannotRun, match=sentence):
        imb_arguments(ImbSettings([], smallest_group=2, **setting))


@pytest.mark.parametrize("value", ["-1", "2.5", "16,128", "0.5", "35"])
def test_every_form_of_off_cache_is_taken(value):
    assert value in imb_arguments(ImbSettings([], smallest_group=2, off_cache=value))


def test_a_setting_that_a_program_has_no_option_for_is_refused():
    refuse_unknown("IMB-P2P", ("benchmarks", "largest_bytes"), ["largest_bytes"])
    with pytest.raises(CannotRun, match="IMB-P2P has no option for off_cache; leave it out"):
        refuse_unknown("IMB-P2P", ("benchmarks", "largest_bytes"), ["largest_bytes", "off_cache"])


def test_buffers_may_take_half_of_a_nodes_memory():
    assert buffer_memory_gb(24 * 2**30, 2) == 4.0
    assert buffer_memory_gb(256 * 2**30, 128) == 1.0
    assert buffer_memory_gb(2**30, 4) == 0.125
