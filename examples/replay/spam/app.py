"""Spam in a social network: the canonical program of the ReStream paper (its Listing 3).

A message is spam if its sender writes to strangers more than twice as often as to friends, and
more than a fifth of the messages from its IP address contain an e-mail address.

    python generate.py data
    weir replay app.py --log friendship='data/friendship/*.parquet' \\
        --log message='data/message/*.parquet' --out out
"""

from __future__ import annotations

import re

import weir

app = weir.App("spam")
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

threshold = app.param("threshold", 0.2)

EMAIL = re.compile(r"[a-zA-Z0-9._%+-]+@[a-zA-Z0-9-]+\.[a-zA-Z]+")


def has_email(text):
    return EMAIL.search(text) is not None


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
    if has_email(e.content):
        ip_email_msgs.merge(e.ip, lambda n: n + 1)


@app.on(message)
def judge(e):
    to_strangers = nonfriend_msgs.get(e.sender) > 2 * friend_msgs.get(e.sender)
    if to_strangers and ip_email_msgs.get(e.ip) > threshold * ip_msgs.get(e.ip):
        app.emit("spam", message=e.id, sender=e.sender)
