"""A shop's carts: what was put in, taken out and bought; who left with a full cart gets a mail."""

import random

import weir

app = weir.App("cart_abandonment")
change = app.events(
    "change", "shopper STRING, sku STRING, quantity BIGINT, cents BIGINT, at TIMESTAMP", vs="at"
)
checkout = app.events("checkout", "shopper STRING, coupon STRING, at TIMESTAMP", vs="at")

cart = app.state("cart", default=[], type="LIST(STRUCT(sku STRING, quantity BIGINT, cents BIGINT))")
touched = app.state("touched", default=None, type="TIMESTAMP")
mails = app.state("mails", default=0, last="7d")
sold = app.state("sold", default=0)
coupons = app.state("coupons", default=0)

app.emits("abandoned", "shopper STRING, cents BIGINT, hours DOUBLE")
app.emits("mail", "shopper STRING, skus LIST(STRING)")
app.emits("bought", "shopper STRING, cents BIGINT, items BIGINT")

COUPONS = {"WELCOME10": 0.10, "SPRING": 0.15}


def total_of(items) -> int:
    return sum(item["quantity"] * item["cents"] for item in items)


def changed(items, sku: str, quantity: int, cents: int):
    by_sku = {item["sku"]: item for item in items}
    if sku in by_sku:
        by_sku[sku]["quantity"] += quantity
        if by_sku[sku]["quantity"] <= 0:
            del by_sku[sku]
    elif quantity > 0:
        by_sku[sku] = {"sku": sku, "quantity": quantity, "cents": cents}
    return list(by_sku.values())


@app.on(change)
def fill(e):
    before = touched.get(e.shopper)
    items = cart.get(e.shopper)
    if before is not None and items:
        away = e.at - before
        if away.total_seconds() > 3600:
            value = total_of(items)
            app.emit("abandoned", shopper=e.shopper, cents=value, hours=away.total_seconds() / 3600)
            if value >= 5000 and mails.get(e.shopper) < 2:
                mails.add(e.shopper, 1)
                app.emit("mail", shopper=e.shopper, skus=[item["sku"] for item in items])
    touched.set(e.shopper, e.at)
    cart.set(e.shopper, changed(items, e.sku, e.quantity, e.cents))


@app.on(checkout)
def buy(e):
    items = cart.get(e.shopper)
    if not items:
        app.emit("empty_checkout", shopper=e.shopper)
        return
    cents = total_of(items)
    if e.coupon in COUPONS:
        cents -= round(cents * COUPONS[e.coupon])
        coupons.add(e.coupon, 1)
    for item in items:
        sold.add(item["sku"], item["quantity"])
    cart.set(e.shopper, [])
    app.emit("bought", shopper=e.shopper, cents=cents, items=len(items))


# --- a log, and the same rules as a loop over dictionaries --------------------------------------

MINUTE = 60_000_000


def logs():
    draw = random.Random(23)
    prices = {"lamp": 2900, "mug": 800, "desk": 9900, "pen": 150}
    changes = []
    for t in range(300):
        sku = draw.choice(list(prices))
        changes.append(
            {
                "shopper": f"s{draw.randrange(9)}",
                "sku": sku,
                "quantity": draw.choice((1, 1, 2, -1)),
                "cents": prices[sku],
                "at": t * 7 * MINUTE,
            }
        )
    checkouts = [
        {
            "shopper": f"s{draw.randrange(9)}",
            "at": t * 7 * MINUTE + 3,
            "coupon": draw.choice((None, None, "SPRING", "WELCOME10", "OLD")),
        }
        for t in range(10, 300, 6)
    ]
    return {"change": changes, "checkout": checkouts}


def loop(events):
    emits, carts, touched, mails, sold, coupons = [], {}, {}, {}, {}, {}
    times = {}
    for name, e in events:
        s = e.shopper
        cart = carts.get(s, {})
        cents = sum(n * price for n, price in cart.values())
        if name == "checkout":
            if not cart:
                emits.append(("empty_checkout", e.vs, {"shopper": s}))
                continue
            if e.coupon in ("WELCOME10", "SPRING"):
                cents -= round(cents * (0.10 if e.coupon == "WELCOME10" else 0.15))
                coupons[e.coupon] = coupons.get(e.coupon, 0) + 1
            for sku, (n, _) in cart.items():
                sold[sku] = sold.get(sku, 0) + n
            carts[s] = {}
            emits.append(("bought", e.vs, {"shopper": s, "cents": cents, "items": len(cart)}))
            continue
        if cart and e.vs - times[s] > 60 * MINUTE:
            hours = (e.vs - times[s]) / 1_000_000 / 3600
            emits.append(("abandoned", e.vs, {"shopper": s, "cents": cents, "hours": hours}))
            week = [at for at in mails.get(s, []) if e.vs < at + 7 * 24 * 60 * MINUTE]
            if cents >= 5000 and len(week) < 2:
                mails[s] = [*week, e.vs]
                emits.append(("mail", e.vs, {"shopper": s, "skus": list(cart)}))
        touched[s], times[s] = e.at, e.vs
        cart = dict(cart)
        if e.sku in cart:
            cart[e.sku] = (cart[e.sku][0] + e.quantity, cart[e.sku][1])
        elif e.quantity > 0:
            cart[e.sku] = (e.quantity, e.cents)
        carts[s] = {sku: (n, price) for sku, (n, price) in cart.items() if n > 0}
    saved = {
        s: [{"sku": sku, "quantity": n, "cents": price} for sku, (n, price) in cart.items()]
        for s, cart in carts.items()
    }
    return emits, {"cart": saved, "touched": touched, "sold": sold, "coupons": coupons}
