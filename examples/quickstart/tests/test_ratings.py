import pytest

from shop.ratings import average, histogram


@pytest.mark.parametrize(
    ("stars", "expected"), [([5], 5.0), ([1, 2], 1.5), ([5, 4, 4], 4.3), ([3, 3, 3, 4], 3.2), ([1, 1], 1)]
)
def test_average(stars, expected):
    assert average(stars) == expected


def test_nobody_has_rated():
    assert average([]) == 0


def test_histogram():
    assert histogram([5, 4, 4, 1]) == [1, 0, 0, 2, 1]
    assert histogram([]) == [0, 0, 0, 0, 0]
