"""Which tests of built-ins and interface run on which backends; `backend_fixture` has the rule."""

_BY_REASON = {
    "no UDF is run, or a method is called on arrays of its own": """
        interface/test_names
        udfs/test_find_center
        udfs/test_near_misses
        udfs/test_untouched_partials
        udfs/test_record::test_many_open_it_at_once
    """,
    "the run is in a process of its own, or it counts what a process makes once": """
        interface/test_hooks::test_classes_of_a_notebook_travel
        udfs/test_apply_masks::test_the_plan_need_not_compute_them
    """,
    "it makes its own chunks, of every sparse format": """
        udfs/test_sparse_chunks
    """,
    "about the dense memory of chunks: views of it, its strides, its tiles": """
        interface/test_dtypes::test_data_in_the_wanted_dtype_are_not_copied
        udfs/test_sum::test_tiles_are_deep
        udfs/test_sum::test_frames_that_must_be_copied_are_copied_a_tile_at_a_time
        udfs/test_rings_of_small_frames
    """,
}

_NOT_ON_DEVICE = {
    "a device multiplies with dense masks: NaN outside of one makes the product NaN": """
        udfs/test_apply_masks::test_mostly_empty_masks_are_multiplied_sparse
    """,
    "xarray compares the lazy result with data on the host": """
        udfs/test_picked_axes::test_axes_of_a_dataset
    """,
    "cuBLAS adds up float32 as it likes": """
        udfs/test_apply_masks::test_products_are_as_accurate_as_pairwise_sums
    """,
}
_NOT_ON_STAND_IN = {
    "tasks run in other processes, where nothing stands in for CuPy": """
        interface/test_hooks::test_mixins_and_lambdas_made_in_a_function
        interface/test_mapping::test_mixins_and_lambdas_made_in_a_function
        udfs/test_apply_masks::test_on_a_cluster
        udfs/test_given_masks::test_on_a_scheduler
        udfs/test_record::test_a_cluster
        udfs/test_record::test_processes
    """,
}

NOT_ON_DEVICE = {n: reason for reason, names in _NOT_ON_DEVICE.items() for n in names.split()}
"""Why a test is not run on CuPy chunks."""
NOT_ON_STAND_IN = {n: reason for reason, names in _NOT_ON_STAND_IN.items() for n in names.split()}
"""Why a test is not run with NumPy standing in for CuPy."""
UNCHANGED = {name: reason for reason, names in _BY_REASON.items() for name in names.split()}
"""Why a test, or a whole file of tests, is not run on other backends."""

MATRIX_TESTS = frozenset(
    """
    interface/test_shapes::test_any_number_of_axes
    udfs/test_apply_masks::test_spectra
    udfs/test_logsum::test_any_chunks_and_region
    udfs/test_stddev::test_any_chunks_and_region
    udfs/test_sum::test_any_chunks_and_region
    """.split()
)
"""Tests over arrays with one navigation and one signal axis, which can be cut into matrices."""
