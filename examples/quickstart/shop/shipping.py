"""Parcel classes by weight in grams."""

LIMITS = [500, 1000, 2000, 5000, 10000, 31500]


def parcel_class(weight, limits=LIMITS):
    """Index of the first limit that is not below the weight; `len(limits)` if it is too heavy for all.

    `limits` is sorted: a binary search.
    """
    low, high = 0, len(limits)
    while low < high:
        middle = (low + high) // 2
        if limits[middle] < weight:
            low = middle
        else:
            high = middle
    return low
