"""Which tests of built-ins and interface run on which backends; `backend_fixture` has the rule."""

_BY_REASON = {
    "mistakes that are raised before there is an array": """
        interface/test_mapping::test_auto_udf_wants_a_function
        udfs/test_apply_masks::test_in_the_plan
        udfs/test_apply_masks::test_mistakes
        udfs/test_com::test_wrong_parameters_are_named
        udfs/test_com_corrections::test_a_wrong_angle_is_named
        udfs/test_com_corrections::test_beam_shifts_of_another_unit_are_refused
        udfs/test_com_corrections::test_what_cannot_be_guessed_is_named
        udfs/test_correlation::test_wrong_parameters
        udfs/test_crystallinity::test_wrong_parameters
        udfs/test_fem::test_wrong_rings
        udfs/test_given_masks::test_a_mask_takes_no_numbers
        udfs/test_given_masks::test_masks_that_are_none
        udfs/test_monitor::test_a_mistake
        udfs/test_near_misses
        udfs/test_neighbor_average::test_mistakes
        udfs/test_neighbor_average::test_the_size_of_a_window_is_limited
        udfs/test_neighbor_drift::test_mistakes
        udfs/test_neighbor_drift::test_mistakes_in_the_integral
        udfs/test_neighbor_similarity::test_mistakes
        udfs/test_own_centers::test_other_detectors_have_no_center
        udfs/test_own_centers::test_wrong_centers
        udfs/test_radial_fourier::test_wrong_parameters_are_named
        udfs/test_radial_profile::test_wrong_parameters_are_named
        udfs/test_stddev::test_bad_dtypes
        udfs/test_virtual_detector::test_mistakes_at_once
        udfs/test_virtual_detector::test_other_words_for_numbers
        udfs/test_virtual_detector::test_radii_in_a_unit_are_compared_as_typed
    """,
    "no UDF is run: what an instance, a class or a document says": """
        interface/test_class_attributes::test_keeps_units
        interface/test_class_attributes::test_every_attribute_has_a_how_to
        interface/test_hooks::test_repr_is_short
        interface/test_life::test_params
        interface/test_life::test_params_and_xp_right_after_super_init
        interface/test_meta::test_slice_arithmetic
        interface/test_names
        udfs/test_apply_masks::test_the_mask_axis_has_a_name
        udfs/test_fem::test_lazy_numbers_are_not_computed
        udfs/test_virtual_detector::test_it_says_what_it_is
    """,
    "a method is called on arrays of its own, without a run": """
        interface/test_merging::test_default_merge_casts_safely
        udfs/test_find_center
        udfs/test_own_centers::test_elliptical_bins_are_those_of_round_coordinates
        udfs/test_com::test_with_params_is_the_same
        udfs/test_com_corrections::test_a_guess_is_that_of_trying_every_angle
        udfs/test_com_corrections::test_a_guess_is_what_the_udf_takes
        udfs/test_com_corrections::test_a_guess_leaves_out_what_is_not_known
        udfs/test_com_corrections::test_a_guess_undoes_what_was_done
        udfs/test_com_corrections::test_backward_undoes_forward
        udfs/test_com_corrections::test_beam_shifts_are_x_before_y_and_point_back
        udfs/test_com_corrections::test_corrections_are_lazy_on_lazy_arrays
        udfs/test_com_corrections::test_the_beam_shift_of_a_signal_keeps_its_axes
        udfs/test_neighbor_drift::test_integrals_are_least_squares
        udfs/test_neighbor_drift::test_integrals_of_differences
        udfs/test_neighbor_drift::test_parts_that_nothing_connects
        udfs/test_neighbor_drift::test_weights_of_many_sizes
        udfs/test_record::test_many_open_it_at_once
        udfs/test_record::test_nobody_writes_back_what_it_has_read
        udfs/test_record::test_unwritten_rows_of_a_new_file_are_zero
        udfs/test_untouched_partials
    """,
    "the run is in a process of its own, started from a file": """
        interface/test_hooks::test_classes_of_a_notebook_travel
    """,
    "it counts what a process makes once, which an earlier run has made": """
        udfs/test_apply_masks::test_the_plan_need_not_compute_them
    """,
    "it makes its own chunks of every sparse format": """
        udfs/test_sparse_chunks
    """,
    "it checks names, and no frame is processed": """
        udfs/test_named_outputs::test_names_that_are_none
    """,
    "it runs through an accessor, on data of its own": """
        udfs/test_named_outputs::test_labeled_arrays
        udfs/test_order_of_axes::test_the_warning_comes_through_the_accessors
        udfs/test_picked_axes::test_axes_of_a_dataset
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
