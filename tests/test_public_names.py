import inspect

import pytest

import udfdask


def test_all_is_what_dir_offers():
    assert [name for name in dir(udfdask) if not name.startswith("_")] == list(udfdask.__all__)


def test_all_is_sorted_and_without_repeats():
    assert list(udfdask.__all__) == sorted(set(udfdask.__all__))


@pytest.mark.parametrize("name", udfdask.__all__)
def test_public_name_has_a_docstring_of_its_own(name):
    value = getattr(udfdask, name)
    assert vars(value).get("__doc__") if inspect.isclass(value) else inspect.getdoc(value)
