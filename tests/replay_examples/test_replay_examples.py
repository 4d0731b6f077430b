"""The examples of `examples/replay` give the rows of a plain loop, which is beside them here."""

from __future__ import annotations

from pathlib import Path

import pytest

from replay_examples.cases import CASES, Case, module, rows_of


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("logs")
    for case in CASES.values():
        case.generate(folder / case.name)
    return {name: folder / name for name in CASES}


@pytest.mark.parametrize("case", CASES.values(), ids=lambda c: c.name)
def test_generators_make_the_same_logs_again(
    case: Case, logs: dict[str, Path], tmp_path: Path
) -> None:
    case.generate(tmp_path)
    files = sorted(p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.is_file())
    assert files
    for file in files:
        assert (tmp_path / file).read_bytes() == (logs[case.name] / file).read_bytes()


@pytest.mark.parametrize("case", CASES.values(), ids=lambda c: c.name)
def test_every_rule_of_an_example_finds_something(case: Case, logs: dict[str, Path]) -> None:
    emitted = case.expected(logs[case.name])
    assert all(len(rows) > 5 for rows in emitted.values())


def test_logs_of_the_spam_example_are_as_the_paper_says(tmp_path: Path) -> None:
    generate = module("spam", "generate")
    generate.generate(tmp_path, 20_000, users=2000, files=3)
    messages = rows_of(tmp_path, "message/*.parquet")
    times = [vs for vs, _ in messages]
    assert times == sorted(times) and len(set(times)) < len(times)
    sizes = [32 + len(m["ip"]) + len(m["content"]) for _, m in messages]
    assert 110 < sum(sizes) / len(sizes) < 140
