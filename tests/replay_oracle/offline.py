"""Random apps on Spark, many in one job: `python -m replay_oracle.offline --seeds 1000`.

Each app has a layout in one job with all its outputs (emits, then final states), as the cases of
`weir conform` are; a job has the apps of one cut.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from functools import partial

from pyspark.sql import SparkSession

from replay_oracle.differences import told, way_of
from replay_oracle.engine import Prepared, Refused, answered, prepare
from replay_oracle.loop import comparable_answer, run_serially
from replay_oracle.programs import Case, draw_case
from weir.events.batch import Batch
from weir.files.writers import OutputForm
from weir.runtime.outputs import output_schema
from weir.spark.offline.blocks import decode
from weir.spark.offline.progress import Watch
from weir.spark.offline.query import collected, is_output, job_frame, job_settings
from weir.spark.offline.reports import TaskReport, first_error, read_task_report
from weir.spark.offline.targets import Target
from weir.spark.offline.waves import Layout, make_job, make_layout
from weir.spark.session import default_parallelism, session
from weir.testing.memory_runs import memory_partitions

APPS_IN_A_JOB = 50
TASKS_A_CORE = 4


def run_packed(
    spark: SparkSession, cases: Sequence[tuple[Case, Prepared]], cut: int | None
) -> dict[int, str]:
    """Run apps in one job; return what is wrong, by seed."""
    layouts: list[Layout] = []
    targets: list[tuple[int, int]] = []
    for number, (case, prepared) in enumerate(cases):
        mine = []
        for place, output in enumerate(prepared.program.outputs):
            mine.append(Target("rows", len(targets), OutputForm("", output_schema(output))))
            targets.append((number, place))
        parts = memory_partitions(prepared.program, case.logs)
        layouts.append(make_layout(prepared.program, parts, mine, way_of(case.seed).parallelism))
    cores = default_parallelism(spark)
    with tempfile.TemporaryDirectory(prefix="weir-oracle-") as news:
        job = make_job(layouts, cut=cut, check=True, errors="report", progress=news)
        query = partial(job_frame, spark, job, cores, TASKS_A_CORE * cores)
        with job_settings(spark, job):
            rows = collected(spark, query, Watch(job, news, None))
    came: list[list[list[Batch]]] = [[[] for _ in p.program.outputs] for _, p in cases]
    reports: dict[int, list[TaskReport]] = {}
    for row in rows:
        if is_output(row):
            number, place = targets[row.input]
            shape = output_schema(cases[number][1].program.outputs[place])
            came[number][place].append(decode(row.block, len(shape.columns)))
        else:
            report = read_task_report(row.block)
            reports.setdefault(report.layout, []).append(report)
    wrong: dict[int, str] = {}
    for number, (case, prepared) in enumerate(cases):
        error = first_error(reports.get(number, []))
        if error is not None:
            wrong[case.seed] = str(error)
            continue
        found = answered(prepared, came[number], case.source, case.logs)
        right = comparable_answer(
            run_serially(case.source, case.logs, case.params),
            numbered=way_of(case.seed).numbered,
        )
        if found != right:
            wrong[case.seed] = told(right, found)
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(prog="replay_oracle.offline", description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--start", type=int, default=0)
    args = parser.parse_args()
    counts: Counter[str] = Counter()
    by_cut: dict[int | None, list[tuple[Case, Prepared]]] = {}
    for seed in range(args.start, args.start + args.seeds):
        case, how = draw_case(seed), way_of(seed)
        try:
            prepared = prepare(
                case.source, case.params, vectorise=how.vectorise, numbered=how.numbered
            )
        except Refused:
            counts["refused"] += 1
            continue
        by_cut.setdefault(how.cut, []).append((case, prepared))
    with session() as spark:
        return _run(spark, by_cut, counts)


def _run(
    spark: SparkSession,
    by_cut: dict[int | None, list[tuple[Case, Prepared]]],
    counts: Counter[str],
) -> int:
    for cut, cases in by_cut.items():
        for first in range(0, len(cases), APPS_IN_A_JOB):
            some = cases[first : first + APPS_IN_A_JOB]
            wrong = run_packed(spark, some, cut)
            counts["wrong"] += len(wrong)
            counts["same"] += len(some) - len(wrong)
            for seed, text in wrong.items():
                print(f"seed {seed}, cut {cut}: {text}\n", flush=True)
    print(dict(counts))
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
