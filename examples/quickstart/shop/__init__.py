"""A small shop: carts, catalogue, customers, pages of results, ratings, shipping."""
