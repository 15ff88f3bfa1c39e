import pytest

from shop.paging import page, page_count


@pytest.mark.parametrize(
    ("count", "size", "expected"),
    [(0, 10, 0), (1, 10, 1), (10, 10, 1), (11, 10, 2), (25, 10, 3), (30, 10, 3), (5, 1, 5), (7, 3, 3)],
)
def test_page_count(count, size, expected):
    assert page_count(count, size) == expected


def test_pages_hold_everything_once():
    entries = list("abcdefgh")
    assert page(entries, 1, 3) == ["a", "b", "c"]
    assert page(entries, 3, 3) == ["g", "h"]
    assert page(entries, 4, 3) == []


def test_page_count_fits_the_pages():
    entries = list(range(20))
    last = page_count(len(entries), 5)
    assert page(entries, last, 5) == [15, 16, 17, 18, 19]
