"""A trading rule: buy what breaks out of the highest prices of half an hour, sell below the mean.

python generate.py data
weir replay app.py --log trade=data/trade.csv --out out --format jsonl
"""

from __future__ import annotations

import weir

app = weir.App("trading")
trade = app.events("trade", "symbol STRING, price DOUBLE, size BIGINT, at TIMESTAMP", vs="at")

margin = app.param("margin", 0.002)

highs = app.state("highs", default=[], type="LIST(DOUBLE)", last="30m")  # the three highest prices
volume = app.state("volume", default=0, last="10m")
turnover = app.state("turnover", default=0.0, last="10m")
largest = app.state("largest", default=[], type="LIST(BIGINT)")  # the five largest trades ever
bought = app.state("bought", default=0.0)  # at which price; 0: we hold nothing
profit = app.state("profit", default=0.0)


@app.on(trade)
def watch(e):
    highs.top_k(e.symbol, e.price, 3)
    volume.add(e.symbol, e.size)
    turnover.add(e.symbol, e.price * e.size)
    largest.top_k(e.symbol, e.size, 5)


@app.on(trade)
def follow(e):
    high = highs.get(e.symbol)
    mean = turnover.get(e.symbol) / volume.get(e.symbol)
    at = bought.get(e.symbol)
    if at == 0.0:
        if len(high) == 3 and e.price >= high[0] and e.price > high[2] * (1 + margin):
            bought.set(e.symbol, e.price)
            app.emit("orders", symbol=e.symbol, side="buy", price=e.price)
    elif e.price < mean:
        bought.set(e.symbol, 0.0)
        profit.add(e.symbol, e.price - at)
        app.emit("orders", symbol=e.symbol, side="sell", price=e.price)


@app.on(trade)
def report(e):
    top = largest.get(e.symbol)
    if len(top) == 5 and e.size > top[4] * 3:
        app.emit("blocks", symbol=e.symbol, size=e.size, profit=profit.get(e.symbol))
