"""A backtest: buy when the fast average crosses the slow one, with a position and a stop loss."""

import random

import weir

app = weir.App("backtest")
tick = app.events("tick", "symbol STRING, price DOUBLE, at BIGINT", vs="at", unit="s")

fast = app.state("fast", default=0.0)
slow = app.state("slow", default=0.0)
position = app.state("position", default=0)
entry = app.state("entry", default=0.0)
pnl = app.state("pnl", default=0.0)
trades = app.state("trades", default=0)
stop = app.param("stop", 0.02)
size = app.param("size", 100)


def ewma(old: float, x: float, alpha: float) -> float:
    return x if old == 0.0 else alpha * x + (1 - alpha) * old


@app.on(tick)
def averages(e):
    fast.merge(e.symbol, lambda old: ewma(old, e.price, 0.3))
    slow.merge(e.symbol, lambda old: ewma(old, e.price, 0.05))


@app.on(tick)
def trade(e):
    held = position.get(e.symbol)
    if held == 0:
        if fast.get(e.symbol) > slow.get(e.symbol) * 1.001:
            position.set(e.symbol, size)
            entry.set(e.symbol, e.price)
            app.emit("order", symbol=e.symbol, side="buy", quantity=size, price=e.price)
        return
    bought = entry.get(e.symbol)
    stopped = e.price < bought * (1 - stop)
    if stopped or fast.get(e.symbol) < slow.get(e.symbol):
        gain = (e.price - bought) * held
        pnl.add(e.symbol, gain)
        trades.add(e.symbol, 1)
        position.set(e.symbol, 0)
        app.emit("order", symbol=e.symbol, side="sell", quantity=held, price=e.price)
        app.emit("closed", symbol=e.symbol, gain=gain, total=pnl.get(e.symbol), stopped=stopped)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(2)
    prices = {"ACME": 50.0, "GLOB": 120.0, "INIT": 9.0}
    rows = []
    for t in range(400):
        symbol = draw.choice(list(prices))
        prices[symbol] *= 1 + draw.gauss(0, 0.006)
        rows.append({"symbol": symbol, "price": round(prices[symbol], 2), "at": t})
    return {"tick": rows}


def loop(events):
    emits, fast, slow, position, entry, gains, trades = [], {}, {}, {}, {}, {}, {}
    for _, e in events:
        s, p = e.symbol, e.price
        fast[s] = p if fast.get(s, 0.0) == 0.0 else 0.3 * p + (1 - 0.3) * fast[s]
        slow[s] = p if slow.get(s, 0.0) == 0.0 else 0.05 * p + (1 - 0.05) * slow[s]
        held = position.get(s, 0)
        if held == 0:
            if fast[s] > slow[s] * 1.001:
                position[s], entry[s] = 100, p
                order = {"symbol": s, "side": "buy", "quantity": 100, "price": p}
                emits.append(("order", e.vs, order))
            continue
        stopped = p < entry[s] * (1 - 0.02)
        if stopped or fast[s] < slow[s]:
            gain = (p - entry[s]) * held
            gains.setdefault(s, []).append(gain)
            trades[s] = trades.get(s, 0) + 1
            position[s] = 0
            order = {"symbol": s, "side": "sell", "quantity": held, "price": p}
            emits.append(("order", e.vs, order))
            total = exact(gains[s])
            closed = {"symbol": s, "gain": gain, "total": total, "stopped": stopped}
            emits.append(("closed", e.vs, closed))
    return emits, {
        "fast": fast,
        "slow": slow,
        "position": position,
        "entry": entry,
        "trades": trades,
        "pnl": {s: exact(of) for s, of in gains.items()},
    }


def exact(values):
    """A sum of DOUBLE states is exact, rounded once."""
    from math import fsum

    return fsum(values)
