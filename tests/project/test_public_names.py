import inspect

import pytest

import udfdask


@pytest.mark.point(31)
def test_all_is_what_dir_offers():
    offered = {name for name in dir(udfdask) if not name.startswith("_")}
    assert offered == set(udfdask.__all__) - {"__version__"}


def test_no_name_is_listed_twice():  # their order is ruff's (RUF022)
    assert len(udfdask.__all__) == len(set(udfdask.__all__))


def test_public_names_have_docstrings_of_their_own():
    for name in udfdask.__all__:
        value = getattr(udfdask, name)
        own = vars(value).get("__doc__") if inspect.isclass(value) else inspect.getdoc(value)
        assert own, name
