import pytest

from shop.catalog import Catalog


@pytest.fixture
def catalog():
    return Catalog({"A1": 1_50, "B2": 20_00})


def test_price(catalog):
    assert catalog.price("A1") == 1_50
    assert catalog.price("B2") == 20_00


def test_unknown_article(catalog):
    with pytest.raises(KeyError):
        catalog.price("C3")


def test_unknown_article_in_an_empty_catalog():
    with pytest.raises(KeyError, match="no article A1"):
        Catalog().price("A1")


def test_add(catalog):
    catalog.add("C3", 99)
    assert catalog.price("C3") == 99
    assert len(catalog) == 3


@pytest.mark.parametrize(("number", "price"), [("C3", 0), ("C3", -1), ("A1", 5)])
def test_add_refuses(catalog, number, price):
    with pytest.raises(ValueError):
        catalog.add(number, price)
    assert len(catalog) == 2
