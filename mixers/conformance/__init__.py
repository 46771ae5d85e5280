"""The measurements behind `mixers.testing`; `CHECKS` is their table of contents."""

from mixers.conformance.basics import (
    check_batch,
    check_compiled,
    check_config,
    check_copy,
    check_gradients,
    check_pickle,
    check_reference,
    check_repeat,
    check_shape,
    check_sizes,
    check_state,
)
from mixers.conformance.claims import (
    check_causal,
    check_cost,
    check_flops,
    check_gradient_reach,
    check_length,
    check_linear,
    check_order,
    check_reach,
)
from mixers.conformance.derivative import check_derivative
from mixers.conformance.padding import check_empty_row, check_padding_amount, check_padding_content
from mixers.conformance.subject import CheckFunction, Subject, influence
from mixers.conformance.surroundings import (
    check_layout,
    check_placement,
    check_random_state,
    check_training,
)

__all__ = ["CHECKS", "CheckFunction", "Subject", "influence"]

CHECKS: dict[str, CheckFunction] = {
    "shape_and_dtype": check_shape,
    "batch_and_length": check_sizes,
    "same_seed_same_output": check_repeat,
    "every_parameter_gets_gradient": check_gradients,
    "derivative": check_derivative,
    "padding_content": check_padding_content,
    "padding_amount": check_padding_amount,
    "empty_row": check_empty_row,
    "batch_independence": check_batch,
    "training_mode": check_training,
    "memory_layout": check_layout,
    "random_state": check_random_state,
    "placement": check_placement,
    "position_aware": check_order,
    "causal": check_causal,
    "reach": check_reach,
    "reach_of_gradient": check_gradient_reach,
    "linear": check_linear,
    "fixed_length": check_length,
    "flops": check_flops,
    "cost": check_cost,
    "reference": check_reference,
    "state_round_trip": check_state,
    "config_round_trip": check_config,
    "config_pickle": check_pickle,
    "deep_copy": check_copy,
    "compiled": check_compiled,
}
"""All measurements, by the names that `expected_failures` uses."""
