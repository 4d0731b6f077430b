"""What no app may do is refused before it runs, by name."""

import pytest

from replay_oracle.engine import Refused, prepare
from replay_oracle.refused import REFUSED, Refusal


@pytest.mark.parametrize("refusal", REFUSED, ids=lambda r: r.name)
def test_refused_by_name(refusal: Refusal) -> None:
    with pytest.raises(Refused) as refused:
        prepare(refusal.source)
    missing = [word for word in refusal.words if word not in str(refused.value)]
    assert not missing, str(refused.value)
