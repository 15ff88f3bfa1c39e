"""Articles and their prices in cents."""


class Catalog:
    """Prices by article number."""

    def __init__(self, prices=()):
        self._prices = dict(prices)

    def add(self, number, price):
        """Add an article; a number is given once, a price is positive."""
        if price <= 0:
            raise ValueError(f"price of {number} must be positive, not {price}")
        if number in self._prices:
            raise ValueError(f"{number} is in the catalogue already")
        self._prices[number] = price

    def price(self, number):
        """Price of an article; `KeyError` if there is no such article."""
        if number not in self._prices:
            raise ValueError(f"no article {number}")
        return self._prices[number]

    def __len__(self):
        return len(self._prices)
