"""Programs that differ in what they do differ in name; the same program has one name everywhere."""

import itertools
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generated_programs import HOLDERS, LINKS, Namer, Piece, write
from suites import examples

PIECES = st.builds(
    Piece,
    holder=st.sampled_from(sorted(HOLDERS)),
    value=st.integers(1, 9),
    links=st.lists(st.sampled_from(sorted(LINKS)), max_size=2).map(tuple),
    handed_on=st.booleans(),
)


@pytest.fixture(scope="module")
def namers():
    """Two interpreters in which strings have other hashes."""
    both = Namer("1"), Namer("2")
    yield both
    for namer in both:
        namer.close()


def check(namers, programs):
    """Take pairs of programs, of which the second has been edited."""
    with tempfile.TemporaryDirectory() as folder:
        written = [
            [write(Path(folder) / f"{k}{version}", pieces) for version, pieces in enumerate(pair)]
            for k, pair in enumerate(programs)
        ]
        one, other = namers
        here = one.answers(list(itertools.chain(*written)))
        there = other.answers([second for second, _ in reversed(written)])[::-1]
    for k, (pieces, edited) in enumerate(programs):
        (name, again, result), (edited_name, _, edited_result) = here[2 * k : 2 * k + 2]
        assert name == again, f"two names in one process: {pieces}"
        assert name == there[k][0], f"another name in another process: {pieces}"
        assert result != edited_result, f"the edit changed nothing: {pieces}"
        assert name != edited_name, f"{pieces} and {edited} have one name"


def edit(piece):
    """Return the piece with another value; 1 more, since some holders look at odd and even."""
    return replace(piece, value=piece.value + 1)


@pytest.mark.full
@pytest.mark.parametrize("holder", HOLDERS)
def test_each_holder(namers, holder):
    programs = []
    for links, handed_on in itertools.product([(), ("from",), ("module", "from")], (False, True)):
        piece = Piece(holder=holder, value=3, links=links, handed_on=handed_on)
        programs.append(([piece], [edit(piece)]))
    check(namers, programs)


@pytest.mark.parametrize("link", LINKS)
def test_each_link(namers, link):
    programs = []
    for rest, handed_on in itertools.product([(), *((r,) for r in LINKS)], (False, True)):
        piece = Piece(holder="constant", value=3, links=(link, *rest), handed_on=handed_on)
        programs.append(([piece], [edit(piece)]))
    check(namers, programs)


@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(st.lists(PIECES, min_size=1, max_size=5), st.integers(0)), max_size=6))
def test_any_program(namers, drawn):
    programs = []
    for pieces, where in drawn:
        k = where % len(pieces)
        # two of these in one module would be one
        once = [p for p in pieces[:k] + pieces[k + 1 :] if p.holder != "shadowed builtin"]
        programs.append(([*once, pieces[k]], [*once, edit(pieces[k])]))
    check(namers, programs)
