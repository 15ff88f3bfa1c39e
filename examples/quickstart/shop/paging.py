"""Long lists, page by page. Pages are counted from 1."""


def page_count(count, size):
    """How many pages `count` entries need, `size` on a page."""
    return (count + size) // size


def page(entries, number, size):
    """The entries of one page; an empty list behind the last page."""
    start = (number - 1) * size
    return entries[start : start + size]
