"""Machines' temperatures: an alarm needs three bad readings, and clears with hysteresis."""

import random
from enum import Enum, auto

import weir

app = weir.App("alarm_debounce")
reading = app.events(
    "reading", "machine STRING, line STRING, celsius DOUBLE, at TIMESTAMP", vs="at"
)
acknowledge = app.events("acknowledge", "machine STRING, by STRING, at TIMESTAMP", vs="at")

NORMAL = {"phase": "OK", "bad": 0, "good": 0, "raised": 0}
alarm = app.state("alarm", default=NORMAL)
active = app.state("active", default=0)
worst = app.state("worst", default=0.0)
high = app.param("high", 80.0)
low = app.param("low", 72.0)

app.emits("cleared", "machine STRING, minutes BIGINT")


class Phase(Enum):
    OK = auto()
    RAISED = auto()
    ACKNOWLEDGED = auto()


class Debouncer:
    """Decides on one machine, reading by reading."""

    def __init__(self, known):
        self.phase = Phase[known["phase"]]
        self.bad = known["bad"]
        self.good = known["good"]
        self.raised = known["raised"]

    def feed(self, celsius: float, at: int) -> str:
        if celsius >= high:
            self.bad, self.good = self.bad + 1, 0
        elif celsius <= low:
            self.bad, self.good = 0, self.good + 1
        if self.phase is Phase.OK and self.bad >= 3:
            self.phase, self.raised = Phase.RAISED, at
            return "raise"
        if self.phase is not Phase.OK and self.good >= 2:
            self.phase = Phase.OK
            return "clear"
        return ""

    def saved(self) -> dict:
        return {
            "phase": self.phase.name,
            "bad": self.bad,
            "good": self.good,
            "raised": self.raised,
        }


@app.on(reading)
def watch(e):
    machine = Debouncer(alarm.get(e.machine))
    change = machine.feed(e.celsius, e.vs)
    alarm.set(e.machine, machine.saved())
    worst.max(e.machine, e.celsius)
    if change == "raise":
        active.add(e.line, 1)
        app.emit("raised", machine=e.machine, worst=worst.get(e.machine))
    elif change == "clear":
        active.add(e.line, -1)
        minutes = (e.vs - machine.raised) // 60_000_000
        app.emit("cleared", machine=e.machine, minutes=minutes)


@app.on(acknowledge)
def confirm(e):
    machine = Debouncer(alarm.get(e.machine))
    if machine.phase is not Phase.RAISED:
        app.emit("nothing_to_do", machine=e.machine, by=e.by)
        return
    machine.phase = Phase.ACKNOWLEDGED
    alarm.set(e.machine, machine.saved())


@app.on(reading)
def stop_line(e):
    if active.get(e.line) >= 3:
        app.emit("stop", line=e.line, alarms=active.get(e.line))


# --- a log, and the same rules as a loop over dictionaries --------------------------------------

MINUTE = 60_000_000


def logs():
    draw = random.Random(20)
    heat = dict.fromkeys(range(8), 75.0)
    readings = []
    for t in range(400):
        n = draw.randrange(8)
        heat[n] = min(90.0, max(65.0, heat[n] + draw.gauss(0, 5)))
        readings.append(
            {
                "machine": f"m{n}",
                "line": f"l{n % 2}",
                "celsius": round(heat[n], 1),
                "at": t * MINUTE,
            }
        )
    acknowledged = [
        {"machine": f"m{draw.randrange(8)}", "by": "kim", "at": t * MINUTE + 5}
        for t in range(20, 400, 15)
    ]
    return {"reading": readings, "acknowledge": acknowledged}


def loop(events):
    emits, alarms, active, worst = [], {}, {}, {}
    for name, e in events:
        m = e.machine
        phase, bad, good, raised = alarms.get(m, ("OK", 0, 0, 0))
        if name == "acknowledge":
            if phase == "RAISED":
                alarms[m] = ("ACKNOWLEDGED", bad, good, raised)
            else:
                emits.append(("nothing_to_do", e.vs, {"machine": m, "by": e.by}))
            continue
        worst[m] = max(worst.get(m, 0.0), e.celsius)
        if e.celsius >= 80.0:
            bad, good = bad + 1, 0
        elif e.celsius <= 72.0:
            bad, good = 0, good + 1
        if phase == "OK" and bad >= 3:
            phase, raised = "RAISED", e.vs
            active[e.line] = active.get(e.line, 0) + 1
            emits.append(("raised", e.vs, {"machine": m, "worst": worst[m]}))
        elif phase != "OK" and good >= 2:
            phase = "OK"
            active[e.line] -= 1
            fields = {"machine": m, "minutes": (e.vs - raised) // MINUTE}
            emits.append(("cleared", e.vs, fields))
        alarms[m] = (phase, bad, good, raised)
        if active.get(e.line, 0) >= 3:
            emits.append(("stop", e.vs, {"line": e.line, "alarms": active[e.line]}))
    names = ("phase", "bad", "good", "raised")
    saved = {m: dict(zip(names, values, strict=True)) for m, values in alarms.items()}
    return emits, {"alarm": saved, "active": active, "worst": worst}
