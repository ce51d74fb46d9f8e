"""Parameters without a name are an error that says how to pass them."""

import pytest

import udfdask as ud


class Threshold(ud.UDF):
    def __init__(self, threshold, sigma=1):
        super().__init__(threshold, sigma=sigma)


class Plain(ud.UDF):
    pass


def test_the_message_has_the_names_of_the_users_parameters():
    remedy = r"by name: super\(\).__init__\(threshold=threshold, sigma=sigma\)"
    with pytest.raises(ud.ArgumentTypeError, match=f"of Threshold got 1 argument .*{remedy}"):
        Threshold(3)


def test_a_class_without_init():
    with pytest.raises(TypeError, match=r"Plain got 2 arguments without a name: .*Plain\(thr"):
        Plain(3, 4)
