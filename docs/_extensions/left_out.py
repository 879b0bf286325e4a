"""Members that the reference leaves out: what only other parts of the library call."""

LEFT_OUT = {
    "botorch_ext.models.CandidateModels": ["largest_variances", "moments_without", "require_takes"],
    "botorch_ext.models.FiniteCandidates": ["at", "checksum", "moments_without"],
    "botorch_ext.models.FinitePosterior": ["cross_factor"],
    "botorch_ext.models.KernelGP": [
        *("get_extra_state", "set_extra_state", "largest_variance", "moments_without"),
        *("require_takes", "subset_output"),
    ],
    "botorch_ext.strategies.BoundsStrategy": ["check_joint", "models", "next_step", "num_data"],
    "botorch_ext.strategies.History": [
        *("after", "asked_before", "best", "check", "is_attached", "lines"),
    ],
    "botorch_ext.strategies.InsuredStrategy": ["first_step", "next_step"],
    "botorch_ext.strategies.Level": ["children_of", "join", "observe", "put_off", "row_of"],
    "botorch_ext.strategies.Strategy": [
        *("after", "check_event", "check_joint", "check_recorded", "checked", "checked_context"),
        *("follow", "next_trial", "require_askable", "successor", "who_takes_no_actions", "within"),
    ],
}
