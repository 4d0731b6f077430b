"""Inventory: orders of several items reserve stock, deliveries and returns bring it back."""

import random

import weir

app = weir.App("inventory")
delivery = app.events("delivery", "sku STRING, quantity BIGINT, at TIMESTAMP", vs="at")
order = app.events(
    "order",
    "id BIGINT, customer STRING, items LIST(STRUCT(sku STRING, quantity BIGINT)), at TIMESTAMP",
    vs="at",
)
cancel = app.events("cancel", "order_id BIGINT, at TIMESTAMP", vs="at")

stock = app.state("stock", default=0)
ordered = app.state("ordered", default=0)
contents = app.state(
    "contents", default=[], type="LIST(STRUCT(sku STRING, quantity BIGINT))", key="BIGINT"
)
spent_orders = app.state("spent_orders", default=0)


@app.on(delivery)
def receive(e):
    stock.add(e.sku, e.quantity)


@app.on(order)
def remember(e):
    contents.set(e.id, e.items)
    spent_orders.add(e.customer, 1)


@app.on(order)
def reserve(e):
    for item in e.items:
        stock.add(item.sku, -item.quantity)
        ordered.add(item.sku, item.quantity)


@app.on(cancel)
def give_back(e):
    for item in contents.get(e.order_id):
        stock.add(item.sku, item.quantity)
    contents.set(e.order_id, [])


@app.on(order)
def promise(e):
    missing = [item.sku for item in e.items if stock.get(item.sku) < 0]
    if missing:
        app.emit("backorder", order=e.id, customer=e.customer, missing=", ".join(missing))
    else:
        units = sum(item.quantity for item in e.items)
        app.emit("confirmed", order=e.id, units=units, nth=spent_orders.get(e.customer))


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(3)
    skus = [f"sku-{n}" for n in range(12)]
    deliveries = [
        {"sku": draw.choice(skus), "quantity": draw.randint(5, 40), "at": t * 1_000_000}
        for t in range(0, 300, 4)
    ]
    orders = [
        {
            "id": t,
            "customer": draw.choice(("ann", "bob", "cid")),
            "items": [
                {"sku": sku, "quantity": draw.randint(1, 9)}
                for sku in draw.sample(skus, draw.randint(1, 4))
            ],
            "at": t * 1_000_000,
        }
        for t in range(1, 300, 2)
    ]
    cancels = [{"order_id": t, "at": (t + 6) * 1_000_000} for t in range(1, 290, 14)]
    return {"delivery": deliveries, "order": orders, "cancel": cancels}


def loop(events):
    emits, stock, ordered, contents, nth = [], {}, {}, {}, {}
    for name, e in events:
        if name == "delivery":
            stock[e.sku] = stock.get(e.sku, 0) + e.quantity
        elif name == "order":
            contents[e.id] = e.items
            nth[e.customer] = nth.get(e.customer, 0) + 1
            for item in e.items:
                sku, quantity = item["sku"], item["quantity"]
                stock[sku] = stock.get(sku, 0) - quantity
                ordered[sku] = ordered.get(sku, 0) + quantity
            missing = [item["sku"] for item in e.items if stock[item["sku"]] < 0]
            if missing:
                fields = {"order": e.id, "customer": e.customer, "missing": ", ".join(missing)}
                emits.append(("backorder", e.vs, fields))
            else:
                units = sum(item["quantity"] for item in e.items)
                fields = {"order": e.id, "units": units, "nth": nth[e.customer]}
                emits.append(("confirmed", e.vs, fields))
        else:
            for item in contents.get(e.order_id, []):
                stock[item["sku"]] = stock.get(item["sku"], 0) + item["quantity"]
            contents[e.order_id] = []
    return emits, {
        "stock": stock,
        "ordered": ordered,
        "contents": contents,
        "spent_orders": nth,
    }
