from shop.shipping import parcel_class


def test_lightest():
    assert parcel_class(1) == 0
    assert parcel_class(500) == 0


def test_no_classes():
    assert parcel_class(100, limits=[]) == 0


def test_between_limits():
    assert parcel_class(501) == 1
    assert parcel_class(1500) == 2
    assert parcel_class(2000) == 2
    assert parcel_class(9999) == 4


def test_too_heavy():
    assert parcel_class(31500) == 5
    assert parcel_class(31501) == 6
