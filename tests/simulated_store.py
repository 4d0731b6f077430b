"""A live job without Spark whose store is a folder: real machines in a simulated world.

The test lets simulated seconds pass and kills hosts; after each second the job's objects are
copied to the folder, and what the driver would tell onlookers is written beside them."""

import json
from pathlib import Path

import numpy as np

from weir.files.object_store import ObjectStore
from weir.job.history import HistoryKeeper
from weir.job.job_identity import Decisions, JobRecord, encode_job, output_record
from weir.job.plan_drawing import draw_plan
from weir.job.settings import HostSettings, ManagerSettings
from weir.job.status import STATUS, status_of
from weir.job.story import story_key
from weir.plan.plan_fingerprint import plan_fingerprint
from weir.plan.program import DIRECT
from weir.plan.strategy import NamedStrategy
from weir.reliable.codec import encode_record
from weir.reliable.object_names import HISTORY, JOB, PLAN
from weir.reliable.strategies import make_strategy
from weir.runtime.instance_factory import InstanceMaker
from weir.runtime.outputs import output_schema
from weir.runtime.partitions import open_partitions
from weir.runtime.program_plan import plan_program
from weir.runtime.vertices import source_of
from weir.script.program import parse_program
from weir.simulator.faults import Faults
from weir.simulator.processes import SimulatedJob
from weir.simulator.world import World

BEGAN = 4_000_000_000.0
"""When the job begins, in seconds since 1970: later than now, so that it is no job without news."""

PROGRAM = """
STREAM Sale (t BIGINT, shop STRING, amount BIGINT)
  FROM 'sales.jsonl' WITH (vs = t, lifetime = 2s, bad = 'skip');
STREAM Visit (t BIGINT, shop STRING) FROM 'visits.jsonl' WITH (vs = t);
Large = SELECT shop, amount FROM Sale WHERE amount > 2;
Both = SELECT Visit.shop AS shop, Large.amount AS amount
  FROM Large INNER JOIN Visit ON Large.shop == Visit.shop;
PerShop = SELECT shop, COUNT(*) AS n, SUM(amount) AS total FROM Both GROUP BY shop
  WITH TUMBLING(1s);
OUTPUT PerShop TO 'per_shop.csv';
OUTPUT Both TO 'both.csv';
OUTPUT BAD OF Sale TO 'bad.jsonl';
"""

EVIL = '</script><img src=x onerror="alert(1)">\u202e & "quotes"'
"""A text of the user's that must do no harm, as the name of a shop."""


def write_inputs(folder: Path, seconds: int) -> None:
    """Forty sales and twenty visits a second; one sale of them is no JSON."""
    sales, visits = [], []
    for tick in range(seconds * 40):
        at = tick * 25_000
        row = {"t": at, "shop": ("ann's", "bob's", EVIL)[tick % 3], "amount": tick % 7}
        sales.append(json.dumps(row))
        if tick % 2:
            visits.append(json.dumps({"t": at, "shop": row["shop"]}))
    sales.insert(7, '{"t": "<b>no number</b>"}')
    (folder / "sales.jsonl").write_text("\n".join(sales) + "\n", encoding="utf-8")
    (folder / "visits.jsonl").write_text("\n".join(visits) + "\n", encoding="utf-8")


class SimulatedStore:
    """Runs a job over inputs that last about so many simulated seconds."""

    def __init__(self, folder: Path, seconds: int = 20, text: str = PROGRAM) -> None:
        write_inputs(folder, seconds)
        self.store = ObjectStore(str(folder / "shops"))
        program = parse_program(text)
        partitions = open_partitions(program, folder)
        planned = plan_program(program, 2)
        plan, topology = planned.stages, planned.topology(partitions)
        names = {name: [p.name for p in parts] for name, parts in partitions.items()}
        strategy = make_strategy(NamedStrategy("checkpoint", 2.0))
        strategies = {v.id: strategy for v in topology.order}
        outputs = tuple(
            output_record(o, output_schema(o), kept=o.path not in DIRECT) for o in program.outputs
        )
        record = JobRecord(plan_fingerprint(plan), Decisions(2, names), outputs)
        drawn = draw_plan(plan, topology, {}, names)
        self.store.put(JOB, encode_job(record), new=True)
        self.store.put(PLAN, encode_record(PLAN, drawn))
        sources = {v.id: source_of(plan, v) for v in topology.sources}
        self.world = World(
            SimulatedJob(
                topology,
                strategies,
                InstanceMaker(plan, names, strategies=strategies),
                {v: partitions[s.name][topology.vertices[v].index] for v, s in sources.items()},
                sources,
                cut=10,
                pace=0.25,
                hosts=2,
                host_settings=HostSettings(),
                manager_settings=ManagerSettings(hosts=2, patience=1.0),
            ),
            np.random.default_rng(7),
            Faults(delay=0.002),
        )
        self._history = HistoryKeeper(drawn)
        self._told = self._copied_stories = 0
        self._copied: dict[str, bytes] = {}
        self.world.sources.begin_logs()
        self.world.managers.start()
        self.world.hosts.start_all()

    @property
    def ended(self) -> bool:
        return self.world.ended is not None

    def pass_second(self) -> None:
        """Let a simulated second pass, or the rest of the job, and write what there is to see."""
        time = self.world.time
        until = time.now + 1.0
        time.pass_time(until + 1.0, lambda: time.now >= until or self.ended)
        self._publish()

    def pass_seconds(self, count: int) -> None:
        for _ in range(count):
            self.pass_second()

    def finish(self) -> None:
        """Run to the end."""
        while not self.ended:
            self.pass_second()

    def kill_host(self) -> str:
        """Kill the host that runs most; return its name."""
        busy = max(self.world.hosts.alive, key=lambda h: len(h.machine.running))
        self.world.hosts.kill(busy)
        return busy.machine.session

    def _publish(self) -> None:
        machine = self.world.managers.alive[-1].machine
        status = status_of(machine, self.world.time.now, BEGAN, self.world.ended)
        self._history.take(status)
        self.world.disk.settle()
        there = {key: self.world.disk.body(key) for key in self.world.disk.list()}
        for key, body in there.items():
            if self._copied.get(key) != body:
                self.store.put(key, body)
        self.store.delete(self._copied.keys() - there.keys())
        self._copied = there
        told = [
            type(line)(line.time + BEGAN, line.vertex, line.what, line.kind)
            for line in machine.story[self._told :]
        ]
        self._told += len(told)
        if told:
            key = story_key(1, self._copied_stories)
            self._copied_stories += 1
            self.store.put(key, encode_record(key, told))
        self.store.put(HISTORY, encode_record(HISTORY, self._history.history))
        self.store.put(STATUS, encode_record(STATUS, status))
