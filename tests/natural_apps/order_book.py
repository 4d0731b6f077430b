"""A limit order book: orders match by price, then by time; cancels take the rest out."""

import random
from enum import Enum

import weir

app = weir.App("order_book")
order = app.events(
    "order",
    "id BIGINT, symbol STRING, side STRING, price BIGINT, quantity BIGINT, at BIGINT",
    vs="at",
    unit="ms",
)
cancel = app.events("cancel", "id BIGINT, symbol STRING, at BIGINT", vs="at", unit="ms")

RESTING = "LIST(STRUCT(id BIGINT, price BIGINT, quantity BIGINT))"
bids = app.state("bids", default=[], type=RESTING)
asks = app.state("asks", default=[], type=RESTING)
last_price = app.state("last_price", default=None, type="BIGINT")
volume = app.state("volume", default=0)


class Side(Enum):
    BUY = "buy"
    SELL = "sell"

    def crosses(self, limit: int, price: int) -> bool:
        return price <= limit if self is Side.BUY else price >= limit


def insert(book: list, entry: dict, side: Side) -> None:
    """Put an order behind all that are as good or better."""
    sign = -1 if side is Side.BUY else 1
    position = len(book)
    while position > 0 and sign * book[position - 1]["price"] > sign * entry["price"]:
        position -= 1
    book.insert(position, entry)


@app.on(order)
def match_order(e):
    side = Side(e.side)
    own = bids.get(e.symbol) if side is Side.BUY else asks.get(e.symbol)
    other = asks.get(e.symbol) if side is Side.BUY else bids.get(e.symbol)
    left = e.quantity
    while left > 0 and other and side.crosses(e.price, other[0]["price"]):
        best = other[0]
        filled = min(left, best["quantity"])
        app.emit("fill", taker=e.id, maker=best["id"], price=best["price"], quantity=filled)
        volume.add(e.symbol, filled)
        last_price.set(e.symbol, best["price"])
        left -= filled
        best["quantity"] -= filled
        if best["quantity"] == 0:
            other.pop(0)
    if left > 0:
        insert(own, {"id": e.id, "price": e.price, "quantity": left}, side)
    if side is Side.BUY:
        bids.set(e.symbol, own)
        asks.set(e.symbol, other)
    else:
        asks.set(e.symbol, own)
        bids.set(e.symbol, other)


@app.on(cancel)
def take_out(e):
    for book in (bids, asks):
        resting = book.get(e.symbol)
        kept = [entry for entry in resting if entry["id"] != e.id]
        if len(kept) < len(resting):
            book.set(e.symbol, kept)
            app.emit("cancelled", id=e.id)
            return


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(19)
    orders = [
        {
            "id": t,
            "symbol": draw.choice(("ACME", "GLOB")),
            "side": draw.choice(("buy", "sell")),
            "price": draw.randint(95, 105),
            "quantity": draw.randint(1, 50),
            "at": t,
        }
        for t in range(360)
    ]
    cancels = [
        {"id": (o := draw.choice(orders[:t]))["id"], "symbol": o["symbol"], "at": t}
        for t in range(40, 360, 4)
    ]
    return {"order": orders, "cancel": cancels}


def loop(events):
    emits, books, last, volume = [], {}, {}, {}
    for name, e in events:
        buy, sell = books.setdefault(e.symbol, ([], []))
        if name == "cancel":
            for book in (buy, sell):
                for entry in book:
                    if entry[2] == e.id:
                        book.remove(entry)
                        emits.append(("cancelled", e.vs, {"id": e.id}))
                        break
            continue
        own, other, sign = (buy, sell, 1) if e.side == "buy" else (sell, buy, -1)
        left = e.quantity
        while left and other and sign * other[0][3] <= sign * e.price:
            _, number, maker, price, size = other.pop(0)
            filled = min(left, size)
            left -= filled
            fields = {"taker": e.id, "maker": maker, "price": price, "quantity": filled}
            emits.append(("fill", e.vs, fields))
            volume[e.symbol] = volume.get(e.symbol, 0) + filled
            last[e.symbol] = price
            if size > filled:
                other.insert(0, (sign * price, number, maker, price, size - filled))
        if left:
            own.append((-sign * e.price, e.vs, e.id, e.price, left))
            own.sort()
    wanted = {"bids": {}, "asks": {}, "last_price": last, "volume": volume}
    for symbol, both in books.items():
        for name, book in zip(("bids", "asks"), both, strict=True):
            entries = [{"id": i, "price": p, "quantity": q} for _, _, i, p, q in book]
            wanted[name][symbol] = entries
    return emits, wanted
