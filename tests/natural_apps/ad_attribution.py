"""Ad attribution: an order belongs to the last click of its user within a week, else to a view."""

import random

import weir

app = weir.App("ad_attribution")
view = app.events("view", "user STRING, campaign STRING, at TIMESTAMP", vs="at")
click = app.events(
    "click", "user STRING, campaign STRING, cost_cents BIGINT, at TIMESTAMP", vs="at"
)
order = app.events("order", "id BIGINT, user STRING, cents BIGINT, at TIMESTAMP", vs="at")

last_click = app.state("last_click", default=None, type="STRING", expires="7d")
last_view = app.state("last_view", default=None, type="STRING", expires="1d")
cost = app.state("cost", default=0)
revenue = app.state("revenue", default=0)
views = app.state("views", default=0)


@app.on(view)
def saw(e):
    last_view.set(e.user, e.campaign)
    views.add(e.campaign, 1)


@app.on(click)
def clicked(e):
    last_click.set(e.user, e.campaign)
    cost.add(e.campaign, e.cost_cents)


@app.on(order)
def attribute(e):
    campaign = last_click.get(e.user) or last_view.get(e.user)
    if campaign is None:
        app.emit("organic", order=e.id)
        return
    how = "click" if last_click.get(e.user) is not None else "view"
    revenue.add(campaign, e.cents)
    spent = cost.get(campaign)
    roas = revenue.get(campaign) / spent if spent else None
    app.emit("attributed", order=e.id, campaign=campaign, how=how, roas=roas)


# --- a log, and the same rules as a loop over dictionaries --------------------------------------

HOUR = 3_600_000_000


def logs():
    draw = random.Random(5)
    users, campaigns = [f"u{n}" for n in range(30)], ["spring", "brand", "retarget"]

    def one(t, **more):
        return {"user": draw.choice(users), **more, "at": t * HOUR}

    return {
        "view": [one(t, campaign=draw.choice(campaigns)) for t in range(0, 400, 3)],
        "click": [
            one(t, campaign=draw.choice(campaigns), cost_cents=draw.randint(5, 90))
            for t in range(0, 400, 7)
        ],
        "order": [one(t, id=t, cents=draw.randint(500, 9000)) for t in range(0, 400, 4)],
    }


def loop(events):
    emits, clicks, seen, cost, revenue, views = [], {}, {}, {}, {}, {}
    for name, e in events:
        if name == "view":
            seen[e.user] = (e.vs, e.campaign)
            views[e.campaign] = views.get(e.campaign, 0) + 1
        elif name == "click":
            clicks[e.user] = (e.vs, e.campaign)
            cost[e.campaign] = cost.get(e.campaign, 0) + e.cost_cents
        else:
            at, campaign = clicks.get(e.user, (0, None))
            how = "click"
            if campaign is None or e.vs >= at + 7 * 24 * HOUR:
                at, campaign = seen.get(e.user, (0, None))
                how = "view"
                if campaign is None or e.vs >= at + 24 * HOUR:
                    emits.append(("organic", e.vs, {"order": e.id}))
                    continue
            revenue[campaign] = revenue.get(campaign, 0) + e.cents
            spent = cost.get(campaign, 0)
            roas = revenue[campaign] / spent if spent else None
            fields = {"order": e.id, "campaign": campaign, "how": how, "roas": roas}
            emits.append(("attributed", e.vs, fields))
    return emits, {"cost": cost, "revenue": revenue, "views": views}
