"""Names and addresses as they are printed."""


def full_name(first, last):
    """First name, then last name; either may be empty."""
    return f"{first} {last}".strip()


def sort_key(first, last):
    """Last name first, without regard to case."""
    return (last.lower(), first.lower())


def address_label(customer):
    """Lines of a label for a customer with the keys first, last, street, city."""
    name = full_name(customer["last"], customer["first"])
    return [name, customer["street"], customer["city"].upper()]


def sorted_customers(customers):
    """Customers by last name, then first name."""
    return sorted(customers, key=lambda customer: sort_key(customer["first"], customer["last"]))
