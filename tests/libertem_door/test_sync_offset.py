"""`sync_offset` as LiberTEM's own reader of raw files has it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("libertem", reason="libertem is in the extra of that name")

from libertem.udf.com import CoMParams, CoMUDF
from libertem.udf.stddev import StdDevUDF
from libertem.udf.sum import SumUDF
from libertem.udf.sumsigudf import SumSigUDF

import udfdask as ud
from making import SYNC
from suites import examples
from udfdask.io import open_file

pytestmark = [
    pytest.mark.filterwarnings("ignore::udfdask.UDFWarning"),
    pytest.mark.filterwarnings("ignore:'where' used without 'out':UserWarning"),
]
N_FRAMES, SIG = 15, (8, 8)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("raw") / "scan.raw"
    np.random.default_rng(3).integers(1, 50, (N_FRAMES, *SIG)).astype(np.float32).tofile(path)
    return path


def udfs():
    com = CoMUDF(CoMParams(cy=4, cx=4, r=4))
    return [SumUDF(), SumSigUDF(), StdDevUDF(), com]


@settings(max_examples=examples(60))
@given(
    nav=st.sampled_from([(3, 5), (2, 4), (5, 6), (4, 4)]),
    offset=st.integers(1 - N_FRAMES, N_FRAMES - 1),
    rows=st.integers(1, 3),
    selects=st.booleans(),
)
def test_the_same_frames_at_the_same_positions(context, file, nav, offset, rows, selects):
    roi = np.random.default_rng(4).random(nav) < 0.7 if selects else None
    opened = open_file(
        file,
        nav_shape=nav,
        sig_shape=SIG,
        dtype="f4",
        sync_offset=offset,
        chunks=(rows, 3, -1, -1),
    )
    present = np.ones(nav, bool) if opened.present is None else opened.present
    seen = present if roi is None else present & roi
    if not seen.any():
        return  # nothing to compare: LiberTEM fails there
    dataset = context.load(
        "raw", path=str(file), nav_shape=nav, sig_shape=SIG, dtype="f4", sync_offset=offset
    )
    expected = context.run_udf(dataset=dataset, udf=udfs(), roi=roi)
    results = ud.compute(*ud.run_udf(opened, udfs(), roi=roi), **SYNC)
    for result, theirs in zip(results[:3], expected[:3], strict=True):
        for name, buffer in theirs.items():
            values, ours = np.asarray(buffer.data), np.asarray(result[name])
            if buffer.kind == "nav":
                # LiberTEM has 0 at absent positions, and calls them valid; here they are NaN
                assert np.isnan(ours[~seen]).all()
                assert not result.valid_mask[name][~seen].any()
                values, ours = values[seen], ours[seen]
            np.testing.assert_allclose(ours, values.reshape(ours.shape), rtol=1e-5, atol=1e-4)
    theirs, ours = expected[3]["raw_com"].data, results[3]["raw_com"]
    np.testing.assert_allclose(ours[seen], theirs[seen], rtol=1e-5)
