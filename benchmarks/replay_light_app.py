"""The spam rules without their search for e-mail addresses: what is left is the work on state."""

from __future__ import annotations

import weir

app = weir.App("light")
friendship = app.events("friendship", "a BIGINT, b BIGINT, ts BIGINT", vs="ts")
message = app.events(
    "message",
    "id BIGINT, sender BIGINT, recipient BIGINT, ip STRING, content STRING, ts BIGINT",
    vs="ts",
)

friendships = app.state("friendships", default=False)
friend_msgs = app.state("friend_msgs", default=0)
nonfriend_msgs = app.state("nonfriend_msgs", default=0)
ip_msgs = app.state("ip_msgs", default=0)
ip_email_msgs = app.state("ip_email_msgs", default=0)


@app.on(friendship)
def befriend(e):
    friendships.merge((e.a, e.b), lambda _: True)


@app.on(message)
def count(e):
    if friendships.get((e.sender, e.recipient)):
        friend_msgs.merge(e.sender, lambda n: n + 1)
    else:
        nonfriend_msgs.merge(e.sender, lambda n: n + 1)


@app.on(message)
def by_ip(e):
    ip_msgs.merge(e.ip, lambda n: n + 1)
    if e.recipient % 4 == 0:
        ip_email_msgs.merge(e.ip, lambda n: n + 1)


@app.on(message)
def judge(e):
    to_strangers = nonfriend_msgs.get(e.sender) > 2 * friend_msgs.get(e.sender)
    if to_strangers and ip_email_msgs.get(e.ip) > 0.2 * ip_msgs.get(e.ip):
        app.emit("spam", message=e.id, sender=e.sender)
