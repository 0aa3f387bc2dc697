"""Links, slots and switches: what they can carry, and how much of it arrives."""

from __future__ import annotations

from typing import Literal

from clustergate.core.reasons import Words
from evaluations.derived import DerivedError, require_positive

ENCODING_8B_10B = 0.8
"""Data bits per bit on the wire of SDR, DDR and QDR InfiniBand (paper 001, section II.A)."""

LANE_GBIT_S = {"SDR": 2.5, "DDR": 5.0, "QDR": 10.0}
"""Signalling rate of a lane and direction."""

WIDTHS = (1, 4, 12)
"""Lanes of a link."""

STAGES_OF_SWITCH = {24: 3, 96: 5, 288: 7}
"""Stages that a message passes in a switch of so many ports (paper 003, section 2.1)."""

STAGE_LATENCY_NS = 144.0
"""Of one stage of such a switch (paper 003, section 2.1)."""

IB_PACKET_OVERHEAD_BYTES = 26
"""Header and trailer of a packet: 8 + 12 and 4 + 2 bytes (paper 003, section 2.1)."""

Duplex = Literal["half", "full", "neither"]


DERIVED_LINK = Words(
    "derived.link",
    "there is no {lanes}x {rate} link with 8B/10B encoding",
    remedy="known are {known:list} of {widths} lanes",
)


def infiniband_gbit_s(rate: str, lanes: int) -> float:
    """Return the data rate of a link per direction, in Gbit/s (paper 001, table 1).

    ``rate`` is SDR, DDR or QDR. Raises :class:`DerivedError` for other rates and widths.
    """
    if rate not in LANE_GBIT_S or lanes not in WIDTHS:
        facts = {"rate": rate, "widths": ", ".join(map(str, WIDTHS))}
        raise DerivedError(DERIVED_LINK(lanes=lanes, known=[*LANE_GBIT_S], **facts))
    return LANE_GBIT_S[rate] * ENCODING_8B_10B * lanes


def mb_s_of_gbit_s(gbit_s: float) -> float:
    """Return 1e6 bytes per second of 1e9 bits per second."""
    return gbit_s * 1000 / 8


def efficiency_percent(measured_mb_s: float, peak_mb_s: float) -> float:
    """Return how much of the peak of a link or of a slot arrives, in percent.

    Paper 001, section V (3100 of 4000 MB/s); paper 003, tables 1 and 2. Units need only agree.
    """
    require_positive(peak_mb_s=peak_mb_s)
    return 100 * measured_mb_s / peak_mb_s


def bus_mb_s(clock_mhz: float, bits: int) -> float:
    """Return what a parallel bus such as PCI-X moves at most, in 1e6 bytes/s (paper 003, 2.1)."""
    require_positive(clock_mhz=clock_mhz, bits=bits)
    return clock_mhz * bits / 8


def slot_peak_mb_s(one_way_mb_s: float, *, both_ways: bool, full_duplex: bool) -> float:
    """Return the peak that a benchmark meets: a full-duplex slot has it twice for both ways.

    Paper 003, section 6: PingPong moves one way at a time, Exchange and Sendrecv both.
    """
    return one_way_mb_s * (2 if both_ways and full_duplex else 1)


def duplex_of(one_way_mb_s: float, both_ways_mb_s: float) -> Duplex:
    """Return whether throughputs are those of a half- or of a full-duplex slot.

    Paper 003, section 6.1: one way over both ways is about 1 or about one half. The limits lie in
    the middle between, and as far away on the other sides: 0.75, 0.25 and 1.25.
    """
    require_positive(both_ways_mb_s=both_ways_mb_s)
    part = one_way_mb_s / both_ways_mb_s
    if 0.75 <= part < 1.25:
        return "half"
    return "full" if 0.25 <= part < 0.75 else "neither"


def payload_fraction(mtu_bytes: int, overhead_bytes: int = IB_PACKET_OVERHEAD_BYTES) -> float:
    """Return the part of what a link carries that is payload (paper 003, section 2.1)."""
    require_positive(mtu_bytes=mtu_bytes)
    return mtu_bytes / (mtu_bytes + overhead_bytes)


DERIVED_SWITCH = Words(
    "derived.switch",
    "the stages of a switch of {ports} ports are not known, only of {known}",
)


def switch_latency_ns(ports: int) -> float:
    """Return the latency of a switch of 24, 96 or 288 ports, in ns (paper 003, section 2.1).

    Raises :class:`DerivedError` for other switches.
    """
    if ports not in STAGES_OF_SWITCH:
        known = ", ".join(map(str, STAGES_OF_SWITCH))
        raise DerivedError(DERIVED_SWITCH(ports=ports, known=known))
    return STAGES_OF_SWITCH[ports] * STAGE_LATENCY_NS
