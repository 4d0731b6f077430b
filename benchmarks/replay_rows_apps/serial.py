"""Transfers between accounts: two keys in one step, so they run serially."""

import weir

app = weir.App("serial")
transfer = app.events(
    "transfer", "id BIGINT, source BIGINT, target BIGINT, cents BIGINT, at BIGINT", vs="at"
)

balance = app.state("balance", default=100_000)
moved = app.state("moved", default=0)
app.emits("refused", "id BIGINT, why STRING")


@app.on(transfer)
@app.serial
def move(e):
    if e.source == e.target:
        app.emit("refused", id=e.id, why="the same account")
        return
    fee = 25 if e.cents > 50_000 else 0
    if balance.get(e.source) < e.cents + fee:
        app.emit("refused", id=e.id, why="not covered")
        return
    balance.add(e.source, -e.cents - fee)
    balance.add(e.target, e.cents)
    moved.add(e.source, e.cents)
    if moved.get(e.source) > 1_000_000:
        moved.set(e.source, 0)
