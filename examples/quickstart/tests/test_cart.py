import pytest

from shop.cart import shipping, subtotal, total


def test_subtotal():
    assert subtotal([(1_50, 2), (10_00, 1)]) == 13_00


@pytest.mark.parametrize(
    ("amount", "expected"), [(0, 0), (1, 4_90), (49_99, 4_90), (50_00, 0), (80_00, 0)]
)
def test_shipping(amount, expected):
    assert shipping(amount) == expected


def test_total_without_voucher():
    assert total([(10_00, 2)]) == 24_90
    assert total([(30_00, 2)]) == 60_00


def test_voucher_is_taken_off():
    assert total([(10_00, 2)], voucher=5_00) == 19_90


def test_voucher_does_not_end_free_shipping():
    assert total([(25_00, 2)], voucher=10_00) == 40_00


def test_voucher_above_the_total():
    assert total([(1_00, 1)], voucher=20_00) == 0
