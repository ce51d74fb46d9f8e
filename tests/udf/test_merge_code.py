"""From its code, a `merge` is known to assign nav buffers and to do no more with them."""

import numpy as np
import pytest

from udfdask.udf.merge_code import assigns_nav


class Assigns:
    def adds(self, dest, src):
        dest.peak[:] = src.peak
        dest.total += src.total

    def calls_numpy(self, dest, src):
        dest.total[:] = np.maximum(dest.total, src.total)
        dest.peak[...] = src.peak

    def has_a_parameter(self, into, of):
        into.total[:] += of.total * self.params.factor
        into.peak[:] = of.peak

    def has_a_variable(self, dest, src):
        n = dest.total + src.total
        dest.total[:] = n
        dest.peak[:] = src.peak

    def takes_views(self, dest, src):
        dest.peak[:] = src.peak[:]
        dest.total[:] = src.total[:]

    def takes_views_by_dots(self, dest, src):
        dest.peak[...] = src.peak[...]

    def takes_items(self, dest, src):
        dest["total"][:] += src["total"]
        dest["peak"][:] = src["peak"]

    def takes_views_of_items(self, dest, src):
        dest["peak"][:] = src.peak[:]


class DoesMore:
    def leaves_out(self, dest, src):
        dest.total += src.total

    def adds_nav(self, dest, src):
        dest.peak[:] += src.peak

    def adds_more(self, dest, src):
        dest.peak[:] = src.peak
        dest.peak += 1

    def has_a_branch(self, dest, src):
        if dest.total[0]:
            dest.peak[:] = src.peak

    def may_fail(self, dest, src):
        try:
            _ = 1 // int(dest.total[0])
            dest.peak[:] = src.peak
        except:  # noqa: E722
            pass

    def has_a_loop(self, dest, src):
        dest.peak[:] = src.peak
        for value in src.total:
            dest.total += value

    def changes_nav(self, dest, src):
        dest.peak[:] = src.peak + 1

    def reads_nav(self, dest, src):
        dest.peak[:] = src.peak
        dest.total[:] = dest.peak.max()

    def takes_nav(self, dest, src):
        self.params.found = dest.peak
        dest.peak[:] = src.peak

    def takes_another_item(self, dest, src):
        dest["peak"][:] = src["total"]

    def takes_an_item_by_its_variable(self, dest, src):
        name = "peak"
        dest[name][:] = src[name]

    def assigns_an_item(self, dest, src):
        dest["peak"] = src["peak"]

    def takes_one_row(self, dest, src):
        dest.peak[:] = src.peak[0]

    def takes_steps(self, dest, src):
        dest.peak[:] = src.peak[::2]

    def adds_a_constant(self, dest, src):
        dest.peak[:] = src.peak + ...

    def calls_a_method(self, dest, src):
        dest.items()
        dest.peak[:] = src.peak

    def passes_on(self, dest, src):
        dest.peak[:] = src.peak
        np.copyto(dest, src)

    def reads_results(self, dest, src):
        dest.total += self.results.peak.sum()
        dest.peak[:] = src.peak

    def assigns_a_part(self, dest, src):
        dest.peak[1:] = src.peak[1:]

    def assigns_another(self, dest, src):
        dest.peak[:] = src.total

    def assigns_src(self, dest, src):
        src.peak[:] = dest.peak

    def assigns_itself(self, dest, src):
        dest.peak[:] = dest.peak

    def assigns_twice(self, dest, src):
        dest.total[:] = dest.peak[:] = src.peak

    def has_a_closure(self, dest, src):
        dest.peak[:] = src.peak
        return lambda: dest.total

    def renames(self, dest, src):
        src = dest
        dest.peak[:] = src.peak


@pytest.mark.parametrize("assigns", [True, False])
def test_the_code_says_whether_nav_is_assigned(assigns):
    merges = vars(Assigns if assigns else DoesMore)
    found = {
        name: assigns_nav(merge, {"peak"}, {"total"})
        for name, merge in merges.items()
        if not name.startswith("_")
    }
    assert found
    assert found == dict.fromkeys(found, assigns)


class Wrapped:
    """A decorated method, in the way of the package wrapt."""

    __code__ = Assigns.adds.__code__


@pytest.mark.parametrize("merge", [max, np.add, lambda dest, src: None, Wrapped()])
def test_other_callables(merge):
    assert not assigns_nav(merge, {"peak"}, set())
