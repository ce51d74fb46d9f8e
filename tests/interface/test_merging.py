"""Points 15 to 17: the default merge, merge and merge_all."""

import pytest

from making import NAV, compute, make


@pytest.mark.point(16)
def test_valid_nav_mask(x):
    """In a merge what came before, in get_results everything."""
    log = []

    def merge(self, dest, src):
        log.append(int(self.meta.get_valid_nav_mask().sum()))
        assert self.meta.get_valid_nav_mask(full_nav=True).shape == NAV
        assert len(self.meta.coordinates) in (4, 8)

    def get_results(self):
        return {"v": int(self.meta.get_valid_nav_mask(full_nav=True).sum())}

    udf = make(
        {"v": {"kind": "single", "dtype": "int64"}},
        process_frame=lambda self, frame: None,
        merge=merge,
        get_results=get_results,
    )()
    assert compute(x, udf)["v"] == 24
    assert log == [0, 8, 12, 20]
