import numpy as np
import pytest

from clustergate.stats.modality import FEWEST_OF_A_MODE, separation, two_modes


def test_two_levels_with_nothing_between_are_two_modes() -> None:
    values = [0.52, 0.81, 0.53, 0.52, 0.82, 0.8, 0.51]
    found = two_modes(values)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((0.52, 0.81), rel=0.01)
    assert (found.launches_low, found.launches_high) == (4, 3)


@pytest.mark.parametrize(
    "values",
    [
        [],
        [1.0, 1.0, 1.0, 2.0, 2.0],  # too few
        [1.0, 1.001, 1.0, 1.002, 1.001, 9.0, 9.0],  # two outliers
        [1.0, 1.0, 1.0, 1.03, 1.03, 1.03],  # 3 % apart, which decides nothing
        [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7],  # something between
        [0.0, 0.0, 0.0, 1.0, 1.0, 1.0],  # no logarithm
    ],
)
def test_these_are_not(values: list[float]) -> None:
    assert two_modes(values) is None


def test_values_that_repeat_exactly_can_be_modes() -> None:
    assert two_modes([0.15] * 3 + [0.18] * 3) is not None
    assert two_modes([0.15] * 6) is None


def test_separation_of_two_bell_curves_is_ashmans_d() -> None:
    # Means 0 and 3, variances 1 and 1: D is 3.
    assert separation([-1.0, 0.0, 1.0], [2.0, 3.0, 4.0]) == pytest.approx(3.0)


@pytest.mark.parametrize("launches", [2 * FEWEST_OF_A_MODE, 10, 30])
@pytest.mark.parametrize("kind", ["normal", "exponential"])
def test_one_level_is_rarely_taken_for_two(launches: int, kind: str) -> None:
    generator = np.random.default_rng(5)
    noise = getattr(generator, kind)(size=(2000, launches)) / 5
    seen = sum(two_modes(np.exp(row).tolist()) is not None for row in noise)
    assert seen <= 8
