"""Laws: what holds of every strategy, each a function of what it is tried on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from botorch_ext.testing import asking, correcting, interrupting, reading, refusing, replaying

# By what they say.
LAWS: tuple[Callable[[Any], None], ...] = (
    asking.the_seed_decides,
    asking.a_list_is_asked_one_after_another,
    replaying.a_session_goes_on_from_every_prefix,
    reading.reading_changes_nothing_whatever_becomes_of_what_was_read,
    reading.what_is_handed_in_and_out_is_copied,
    reading.a_copy_goes_its_own_way,
    reading.report_and_info_are_plain,
    reading.report_and_best_say_what_happened,
    reading.trials_are_some_of_what_there_is,
    refusing.impossible_calls_are_refused_as_a_whole,
    refusing.tampered_events_are_refused_as_a_whole,
    refusing.a_replay_that_fails_at_its_end_leaves_nothing,
    refusing.a_record_in_any_form_is_refused_or_taken,
    correcting.a_busy_session_is_replayed_bit_for_bit,
    correcting.a_busy_report_says_what_happened,
    correcting.a_correction_that_changes_nothing_leaves_beliefs,
    correcting.impossible_changes_are_refused_as_a_whole,
    interrupting.calls_broken_off_anywhere_are_made_or_not,
)
