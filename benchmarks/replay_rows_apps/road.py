"""Linear Road: cars report where they are; tolls by congestion, alerts near accidents."""

from dataclasses import dataclass

import weir

app = weir.App("road")
report = app.events(
    "report", "car BIGINT, speed BIGINT, lane BIGINT, seg BIGINT, pos BIGINT, at BIGINT", vs="at"
)

speed_sum = app.state("speed_sum", default=0)
speed_count = app.state("speed_count", default=0)
last_pos = app.state("last_pos", default=-1)
same_pos = app.state("same_pos", default=0)
stopped = app.state("stopped", default=0)
segment_of = app.state("segment_of", default=-1)
balance = app.state("balance", default=0)


@app.on(report)
def statistics(e):
    speed_sum.add(e.seg, e.speed)
    speed_count.add(e.seg, 1)


@app.on(report)
def watch_stopped(e):
    if e.speed == 0 and last_pos.get(e.car) == e.pos:
        same_pos.add(e.car, 1)
    else:
        same_pos.set(e.car, 1)
    last_pos.set(e.car, e.pos)


@app.on(report)
def find_accident(e):
    if same_pos.get(e.car) >= 4:
        stopped.add(e.seg, 1)


def toll_of(cars: int, speed: float) -> int:
    if speed >= 40 or cars <= 50:
        return 0
    return 2 * min(cars - 50, 20) ** 2


@dataclass
class Notice:
    toll: int
    speed: float

    @property
    def shown(self) -> int:
        return round(self.speed)

    def __str__(self) -> str:
        return f"{self.shown} mph, toll {self.toll}" if self.toll else f"{self.shown} mph"


app.emits("toll_notice", "car BIGINT, toll BIGINT, speed BIGINT, text STRING")


@app.on(report)
def charge(e):
    before = segment_of.get(e.car)
    segment_of.set(e.car, e.seg)
    if e.lane == 4 or before == e.seg:
        return
    if stopped.get(e.seg) >= 2:
        app.emit("accident_alert", car=e.car, seg=e.seg)
        return
    average = speed_sum.get(e.seg) / speed_count.get(e.seg)
    notice = Notice(toll_of(speed_count.get(e.seg), average), average)
    balance.add(e.car, notice.toll)
    app.emit("toll_notice", car=e.car, toll=notice.toll, speed=notice.shown, text=str(notice))
