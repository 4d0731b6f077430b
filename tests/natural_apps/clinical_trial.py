"""A clinical trial: eligible subjects go to the arm that keeps strata even; bad arms are halted."""

import random
from dataclasses import dataclass

import weir

app = weir.App("clinical_trial")
screening = app.events(
    "screening",
    "subject STRING, site STRING, age BIGINT, sex STRING, egfr DOUBLE, consented BOOLEAN, "
    "medication LIST(STRING), at TIMESTAMP",
    vs="at",
)
adverse = app.events(
    "adverse", "subject STRING, grade BIGINT, related BOOLEAN, at TIMESTAMP", vs="at"
)

arm_of = app.state("arm_of", default=None, type="STRING")
in_stratum = app.state("in_stratum", default=0, key="STRING, STRING")
in_arm = app.state("in_arm", default=0, key="STRING")
at_site = app.state("at_site", default=0)
serious = app.state("serious", default=0, key="STRING")
halted = app.state("halted", default=False, key="STRING")

app.emits("randomised", "subject STRING, arm STRING, stratum STRING")
app.emits("excluded", "subject STRING, reasons LIST(STRING)")

ARMS = ("placebo", "low dose", "high dose")
PER_SITE = 60
INTERACTING = frozenset({"warfarin", "lithium"})


@dataclass(frozen=True)
class Criterion:
    name: str
    lowest: float
    highest: float

    def fails(self, value: float | None) -> bool:
        return value is None or not (self.lowest <= value <= self.highest)


AGE = Criterion("age", 18, 80)
KIDNEYS = Criterion("kidney function", 45.0, 200.0)


def exclusions(e) -> list[str]:
    reasons = [
        criterion.name
        for criterion, value in ((AGE, e.age), (KIDNEYS, e.egfr))
        if criterion.fails(value)
    ]
    if not e.consented:
        reasons.append("no consent")
    reasons.extend(f"takes {drug}" for drug in e.medication if drug in INTERACTING)
    return reasons


def stratum_of(e) -> str:
    decade = "older" if e.age >= 60 else "younger"
    return f"{e.site}/{e.sex}/{decade}"


@app.on(screening)
def enrol(e):
    if arm_of.get(e.subject) is not None:
        app.emit("duplicate", subject=e.subject, site=e.site)
        return
    reasons = exclusions(e)
    if at_site.get(e.site) >= PER_SITE:
        reasons.append("site is full")
    if reasons:
        app.emit("excluded", subject=e.subject, reasons=reasons)
        return
    open_arms = [arm for arm in ARMS if not halted.get(arm)]
    if not open_arms:
        app.emit("excluded", subject=e.subject, reasons=["trial is halted"])
        return
    stratum = stratum_of(e)
    arm = min(open_arms, key=lambda a: (in_stratum.get((stratum, a)), in_arm.get(a)))
    arm_of.set(e.subject, arm)
    in_stratum.add((stratum, arm), 1)
    in_arm.add(arm, 1)
    at_site.add(e.site, 1)
    app.emit("randomised", subject=e.subject, arm=arm, stratum=stratum)


@app.on(adverse)
def safety(e):
    arm = arm_of.get(e.subject)
    if arm is None or not e.related or e.grade < 3:
        return
    serious.add(arm, 1 if e.grade == 3 else 2)
    treated = in_arm.get(arm)
    if treated >= 10 and serious.get(arm) / treated > 0.25 and not halted.get(arm):
        halted.set(arm, True)
        app.emit("halt", arm=arm, treated=treated, serious=serious.get(arm))


# --- a log, and the same rules as a loop over dictionaries --------------------------------------

HOUR = 3_600_000_000


def logs():
    draw = random.Random(33)
    drugs = ["aspirin", "warfarin", "metformin", "lithium", "ibuprofen"]
    screenings = [
        {
            "subject": f"s{draw.randrange(260)}",
            "site": draw.choice(("Bern", "Graz")),
            "age": draw.randrange(16, 85),
            "sex": draw.choice("fm"),
            "egfr": draw.choice((None, 40.0, 60.0, 75.5, 90.0, 110.0)),
            "consented": draw.random() < 0.95,
            "medication": draw.sample(drugs, draw.choice((0, 0, 1, 2))),
            "at": t * HOUR,
        }
        for t in range(320)
    ]
    adverses = [
        {
            "subject": f"s{draw.randrange(260)}",
            "grade": draw.randint(1, 5),
            "related": draw.random() < 0.7,
            "at": t * HOUR,
        }
        for t in range(3, 320, 2)
    ]
    return {"screening": screenings, "adverse": adverses}


def loop(events):
    emits, arm_of, strata, arms, sites, serious, halted = [], {}, {}, {}, {}, {}, {}
    for name, e in events:
        if name == "adverse":
            arm = arm_of.get(e.subject)
            if arm and e.related and e.grade >= 3:
                serious[arm] = serious.get(arm, 0) + min(e.grade - 2, 2)
                n = arms.get(arm, 0)
                if n >= 10 and serious[arm] / n > 0.25 and arm not in halted:
                    halted[arm] = True
                    fields = {"arm": arm, "treated": n, "serious": serious[arm]}
                    emits.append(("halt", e.vs, fields))
            continue
        if e.subject in arm_of:
            emits.append(("duplicate", e.vs, {"subject": e.subject, "site": e.site}))
            continue
        why = []
        if e.age < 18 or e.age > 80:
            why.append("age")
        if e.egfr is None or e.egfr < 45 or e.egfr > 200:
            why.append("kidney function")
        if not e.consented:
            why.append("no consent")
        for drug in e.medication:
            if drug in ("warfarin", "lithium"):
                why.append("takes " + drug)
        if sites.get(e.site, 0) >= 60:
            why.append("site is full")
        choices = [a for a in ("placebo", "low dose", "high dose") if a not in halted]
        if not why and not choices:
            why.append("trial is halted")
        if why:
            emits.append(("excluded", e.vs, {"subject": e.subject, "reasons": why}))
            continue
        stratum = "/".join((e.site, e.sex, "younger" if e.age < 60 else "older"))
        choices.sort(key=lambda a: (strata.get((stratum, a), 0), arms.get(a, 0)))
        arm = choices[0]
        arm_of[e.subject] = arm
        strata[stratum, arm] = strata.get((stratum, arm), 0) + 1
        arms[arm] = arms.get(arm, 0) + 1
        sites[e.site] = sites.get(e.site, 0) + 1
        fields = {"subject": e.subject, "arm": arm, "stratum": stratum}
        emits.append(("randomised", e.vs, fields))
    return emits, {
        "arm_of": arm_of,
        "in_stratum": strata,
        "in_arm": arms,
        "at_site": sites,
        "serious": serious,
        "halted": halted,
    }
