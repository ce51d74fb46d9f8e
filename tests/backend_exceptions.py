"""Which tests of built-ins and interface run on which backends; `backend_fixture` has the rule."""

UNCHANGED = {
}

MATRIX_TESTS = {
}
