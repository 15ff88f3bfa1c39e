from shop.customers import address_label, full_name, sort_key, sorted_customers

ADA = {"first": "Ada", "last": "Byron", "street": "12 Square", "city": "London"}
ALAN = {"first": "Alan", "last": "Turing", "street": "2 Lane", "city": "Wilmslow"}
ZOE = {"first": "Zoe", "last": "byron", "street": "3 Road", "city": "Leeds"}


def test_full_name():
    assert full_name("Ada", "Byron") == "Ada Byron"
    assert full_name("Plato", "") == "Plato"
    assert full_name("", "Byron") == "Byron"


def test_label():
    assert address_label(ADA) == ["Ada Byron", "12 Square", "LONDON"]


def test_label_of_another():
    assert address_label(ALAN) == ["Alan Turing", "2 Lane", "WILMSLOW"]


def test_sort_key():
    assert sort_key("Ada", "Byron") == ("byron", "ada")


def test_sorted_by_last_name_then_first_name():
    assert sorted_customers([ALAN, ZOE, ADA]) == [ADA, ZOE, ALAN]
