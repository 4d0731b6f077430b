"""Ticket resale: owners list tickets under a price cap, buyers pay sellers from wallets."""

import random

import weir

app = weir.App("ticket_resale")
top_up = app.events("top_up", "user STRING, cents BIGINT, at BIGINT", vs="at", unit="s")
listing = app.events(
    "listing",
    "ticket STRING, seller STRING, face_cents BIGINT, ask_cents BIGINT, at BIGINT",
    vs="at",
    unit="s",
)
buy = app.events("buy", "ticket STRING, buyer STRING, at BIGINT", vs="at", unit="s")

wallet = app.state("wallet", default=0)
owner = app.state("owner", default=None, type="STRING")
offer = app.state("offer", default=None, type="STRUCT(seller STRING, cents BIGINT)")
resold = app.state("resold", default=0)
bought_today = app.state("bought_today", default=0, last="1d")
fees = app.state("fees", default=0, key="STRING")

CAP = 1.2
FEE_PERCENT = 8
MAX_RESALES = 3


def rejection(e):
    holder = owner.get(e.ticket)
    if holder is not None and holder != e.seller:
        return "not yours"
    if e.ask_cents > e.face_cents * CAP:
        return "too dear"
    if resold.get(e.ticket) >= MAX_RESALES:
        return "resold too often"
    return None


@app.on(top_up)
def fund(e):
    wallet.add(e.user, e.cents)


@app.on(listing)
def put_up(e):
    why = rejection(e)
    if why:
        app.emit("rejected", ticket=e.ticket, user=e.seller, why=why)
        return
    owner.set(e.ticket, e.seller)
    offer.set(e.ticket, {"seller": e.seller, "cents": e.ask_cents})


@app.serial  # money goes from buyer to seller, who buys with it
@app.on(buy)
def sell(e):
    deal = offer.get(e.ticket)
    if deal is None or deal.seller == e.buyer:
        app.emit("rejected", ticket=e.ticket, user=e.buyer, why="not for sale")
        return
    if bought_today.get(e.buyer) >= 4:
        app.emit("rejected", ticket=e.ticket, user=e.buyer, why="four a day")
        return
    if wallet.get(e.buyer) < deal.cents:
        app.emit("rejected", ticket=e.ticket, user=e.buyer, why="too little money")
        return
    fee = deal.cents * FEE_PERCENT // 100
    wallet.add(e.buyer, -deal.cents)
    wallet.add(deal.seller, deal.cents - fee)
    fees.add("house", fee)
    owner.set(e.ticket, e.buyer)
    offer.set(e.ticket, None)
    resold.add(e.ticket, 1)
    bought_today.add(e.buyer, 1)
    app.emit("sold", ticket=e.ticket, seller=deal.seller, buyer=e.buyer, cents=deal.cents)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(39)
    users = [f"u{n}" for n in range(9)]
    top_ups = [
        {"user": draw.choice(users), "cents": draw.randrange(1_000, 9_000), "at": t}
        for t in range(0, 250_000, 5_000)
    ]
    listings = [
        {
            "ticket": f"t{draw.randrange(25)}",
            "seller": draw.choice(users),
            "face_cents": 5_000,
            "ask_cents": draw.choice((3_000, 5_000, 6_000, 6_001)),
            "at": t,
        }
        for t in range(10, 250_000, 900)
    ]
    buys = [
        {"ticket": f"t{draw.randrange(25)}", "buyer": draw.choice(users), "at": t}
        for t in range(20, 250_000, 1_000)
    ]
    return {"top_up": top_ups, "listing": listings, "buy": buys}


def loop(events):
    emits, wallet, owner, offer, resold, bought, fees = [], {}, {}, {}, {}, {}, {}
    for name, e in events:
        if name == "top_up":
            wallet[e.user] = wallet.get(e.user, 0) + e.cents
            continue
        t, why = e.ticket, None
        if name == "listing":
            if owner.get(t, e.seller) != e.seller:
                why = "not yours"
            elif e.ask_cents > 6_000:
                why = "too dear"
            elif resold.get(t, 0) >= 3:
                why = "resold too often"
            if why:
                emits.append(("rejected", e.vs, {"ticket": t, "user": e.seller, "why": why}))
            else:
                owner[t], offer[t] = e.seller, {"seller": e.seller, "cents": e.ask_cents}
            continue
        deal, b = offer.get(t), e.buyer
        if not deal or deal["seller"] == b:
            why = "not for sale"
        elif sum(e.vs < at + 86_400_000_000 for at in bought.get(b, [])) >= 4:
            why = "four a day"
        elif wallet.get(b, 0) < deal["cents"]:
            why = "too little money"
        if why:
            emits.append(("rejected", e.vs, {"ticket": t, "user": b, "why": why}))
            continue
        seller, cents = deal["seller"], deal["cents"]
        fee = cents * 8 // 100
        wallet[b] -= cents
        wallet[seller] = wallet.get(seller, 0) + cents - fee
        fees["house"] = fees.get("house", 0) + fee
        owner[t], offer[t], resold[t] = b, None, resold.get(t, 0) + 1
        bought.setdefault(b, []).append(e.vs)
        fields = {"ticket": t, "seller": seller, "buyer": b, "cents": cents}
        emits.append(("sold", e.vs, fields))
    return emits, {"wallet": wallet, "owner": owner, "offer": offer, "resold": resold, "fees": fees}
