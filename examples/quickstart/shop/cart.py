"""What a customer pays. All amounts are whole cents."""

FREE_SHIPPING_FROM = 50_00
SHIPPING = 4_90


def subtotal(lines):
    """Sum of price × quantity over `(price, quantity)` lines."""
    return sum(price * quantity for price, quantity in lines)


def shipping(amount):
    """Shipping for goods of that amount; nothing is shipped for nothing."""
    if amount == 0 or amount >= FREE_SHIPPING_FROM:
        return 0
    return SHIPPING


def total(lines, voucher=0):
    """Goods and shipping, less the voucher; never below zero."""
    goods = subtotal(lines)
    due = goods + shipping(goods) + voucher
    return max(due, 0)
