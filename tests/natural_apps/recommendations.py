"""Recommendations: which products are bought together, and what to show with a basket."""

import random
from itertools import combinations

import weir

app = weir.App("recommendations")
basket = app.events("basket", "id BIGINT, user STRING, products LIST(STRING), at BIGINT", vs="at")
look = app.events("look", "user STRING, product STRING, at BIGINT", vs="at")

together = app.state("together", default=0)
bought = app.state("bought", default=0)
partners = app.state("partners", default=[], type="LIST(STRING)")
owned = app.state("owned", default=[], type="LIST(STRING)")


@app.on(basket)
def learn(e):
    products = sorted(set(e.products))
    for product in products:
        bought.add(product, 1)
        owned.add_to_set(e.user, product)
    for a, b in combinations(products, 2):
        together.add((a, b), 1)
        partners.add_to_set(a, b)
        partners.add_to_set(b, a)


@app.on(look)
def recommend(e):
    mine = owned.get(e.user)
    scores = {}
    for other in partners.get(e.product):
        if other in mine:
            continue
        pair = (min(e.product, other), max(e.product, other))
        scores[other] = together.get(pair) / bought.get(other)
    ranked = sorted(scores, key=lambda p: (-scores[p], p))[:3]
    if ranked:
        app.emit("recommendation", user=e.user, product=e.product, show=ranked)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------


def logs():
    draw = random.Random(12)
    products = ["tea", "milk", "bread", "jam", "eggs", "rice", "soap"]
    baskets = [
        {
            "id": t,
            "user": f"u{draw.randrange(8)}",
            "at": t,
            "products": [draw.choice(products) for _ in range(draw.randint(1, 4))],
        }
        for t in range(0, 400, 4)
    ]
    looks = [
        {"user": f"u{draw.randrange(12)}", "product": draw.choice(products), "at": t}
        for t in range(10, 400, 3)
    ]
    return {"basket": baskets, "look": looks}


def loop(events):
    emits, together, bought, partners, owned = [], {}, {}, {}, {}

    def once(of, key, x):
        if x not in of.setdefault(key, []):
            of[key].append(x)

    for name, e in events:
        if name == "basket":
            products = sorted(set(e.products))
            for product in products:
                bought[product] = bought.get(product, 0) + 1
                once(owned, e.user, product)
            for n, a in enumerate(products):
                for b in products[n + 1 :]:
                    together[a, b] = together.get((a, b), 0) + 1
                    once(partners, a, b)
                    once(partners, b, a)
            continue
        scores = {}
        for other in partners.get(e.product, []):
            if other not in owned.get(e.user, []):
                a, b = sorted((e.product, other))
                scores[other] = together[a, b] / bought[other]
        ranked = sorted(scores, key=lambda p: (-scores[p], p))[:3]
        if ranked:
            fields = {"user": e.user, "product": e.product, "show": ranked}
            emits.append(("recommendation", e.vs, fields))
    return emits, {"together": together, "bought": bought, "partners": partners, "owned": owned}
