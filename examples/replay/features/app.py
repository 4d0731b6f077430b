"""Features of advertisements' impressions, each as it was known when the impression was made.

    python generate.py data
    weir replay app.py --log click=data/click.parquet --log impression=data/impression.parquet \\
        --out out
    python train.py data out
"""

from __future__ import annotations

import weir

app = weir.App("features")
click = app.events("click", "impression BIGINT, user BIGINT, ad BIGINT, ts BIGINT", vs="ts")
impression = app.events("impression", "id BIGINT, user BIGINT, ad BIGINT, ts BIGINT", vs="ts")

user_seen = app.state("user_seen", default=0)
user_clicks = app.state("user_clicks", default=0)
ad_seen = app.state("ad_seen", default=0)
ad_clicks = app.state("ad_clicks", default=0)
ad_lately = app.state("ad_lately", default=0, last="6h")
last_click = app.state("last_click", default=None, type="BIGINT")


@app.on(click)
def clicked(e):
    user_clicks.add(e.user, 1)
    ad_clicks.add(e.ad, 1)
    ad_lately.add(e.ad, 1)
    last_click.set(e.user, e.vs)


@app.on(impression)
def shown(e):
    before = last_click.get(e.user)
    app.emit(
        "features",
        impression=e.id,
        user_rate=(user_clicks.get(e.user) + 1) / (user_seen.get(e.user) + 3),
        ad_rate=(ad_clicks.get(e.ad) + 1) / (ad_seen.get(e.ad) + 3),
        ad_lately=ad_lately.get(e.ad),
        hours=(e.vs - before) // 3_600_000_000 if before is not None else -1,
    )
    user_seen.add(e.user, 1)
    ad_seen.add(e.ad, 1)
