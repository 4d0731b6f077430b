"""A backtest: averages, position and profit of a symbol, each read and written by every tick."""

import weir

app = weir.App("ring")
tick = app.events("tick", "symbol STRING, price DOUBLE, size BIGINT, at BIGINT", vs="at")

fast = app.state("fast", default=0.0)
slow = app.state("slow", default=0.0)
position = app.state("position", default=0)
entry = app.state("entry", default=0.0)
trades = app.state("trades", default=0)
app.emits("order", "symbol STRING, side STRING, quantity BIGINT, price DOUBLE, gain DOUBLE")


def average(before: float, price: float, weight: float) -> float:
    return price if before == 0.0 else weight * price + (1 - weight) * before


@app.on(tick)
def trade(e):
    quick = average(fast.get(e.symbol), e.price, 0.3)
    lazy = average(slow.get(e.symbol), e.price, 0.05)
    fast.set(e.symbol, quick)
    slow.set(e.symbol, lazy)
    held = position.get(e.symbol)
    gain = None
    if held == 0 and quick > lazy * 1.002:
        side, quantity = "buy", e.size
        position.set(e.symbol, quantity)
        entry.set(e.symbol, e.price)
    elif held > 0 and (quick < lazy or e.price < entry.get(e.symbol) * 0.98):
        side, quantity = "sell", held
        gain = (e.price - entry.get(e.symbol)) * held
        position.set(e.symbol, 0)
        trades.add(e.symbol, 1)
    else:
        return
    app.emit("order", symbol=e.symbol, side=side, quantity=quantity, price=e.price, gain=gain)
