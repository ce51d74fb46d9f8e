"""Which parameter sets the default suite and the full one run."""

from types import SimpleNamespace

import pytest

from backend_fixture import one_set_each
from suites import examples, spread


@pytest.mark.parametrize(
    ("sets", "count", "kept"),
    [
        ([], 3, []),
        ([0, 1, 2], 3, [0, 1, 2]),
        (list(range(4)), 3, [0, 1, 3]),
        (list(range(16)), 4, [0, 5, 10, 15]),  # four times four: the diagonal
    ],
)
def test_the_first_the_last_and_some_between(sets, count, kept):
    assert spread(sets, count) == kept


def test_few_examples_unless_all_are_asked_for(monkeypatch):
    for profile, number in (("default", 10), ("full", 200)):
        chosen = SimpleNamespace(get_current_profile_name=lambda name=profile: name)
        monkeypatch.setattr("suites.settings", chosen)
        assert examples(200) == number
        assert examples(5) == 5


def test_every_backend_has_one_set_and_another_one():
    calls = [
        SimpleNamespace(params={"chunk_backend": backend}, id=f"{backend}-{how}")
        for backend in ("numpy", "a", "b")
        for how in ("processes", "threads", "synchronous")
    ]
    assert [call.id for call in one_set_each(calls, ("a", "b"))] == [
        "numpy-processes",
        "numpy-threads",
        "numpy-synchronous",
        "a-threads",
        "b-synchronous",
    ]
