"""Whoever reads an output while things go wrong sees committed rows only, none of them again."""

import numpy as np
import pytest

from weir.job.commit_log import read_part
from weir.job.output_reader import commits
from weir.reliable.digest import Digest, digest
from weir.simulator import world as simulator
from weir.simulator.simulate import run_seed
from weir.simulator.simulated_disk import SimulatedDisk


class WatchedDisk(SimulatedDisk):
    """A disk with a reader, who reads each output on whenever anything of one was written."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng)
        self.seen: dict[str, tuple[int, Digest]] = {}

    def _set(self, key: str, body: bytes) -> None:
        super()._set(key, body)
        if key.startswith(("commits/", "parts/")):
            self.read_on(key.split("/")[1])

    def read_on(self, sink: str) -> None:
        number, total = self.seen.get(sink, (0, Digest()))
        for link in commits(self, sink, None, number):
            assert link.commit.number == number
            rows = [rows for _, rows in read_part(self, link)]
            assert sum(map(len, rows)) == link.commit.rows
            for batch in rows:
                total += digest(batch)
            assert total == link.commit.digest, f"{sink}: what was read is not what is committed"
            number += 1
        self.seen[sink] = (number, total)


@pytest.mark.parametrize("seed", range(40))
def test_readers_see_what_is_committed_and_nothing_else(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulator, "SimulatedDisk", WatchedDisk)
    result = run_seed(seed)
    assert result.passed, "\n".join([result.reason, *result.log[-30:]])
