"""Rates and tokens, against figures worked out from Kafka's formulas by hand."""

from ottla.security.quotas.rates import Rate, TokenBucket, Windows

WINDOWS = Windows(11, 1_000)


def test_a_burst_of_ten_seconds_is_within_the_limit_and_a_byte_more_is_not() -> None:
    rate = Rate(WINDOWS)
    rate.record(10_000, 5_000)

    assert rate.throttle_ms(1_000, 5_000) == 0
    rate.record(500, 5_000)
    assert rate.throttle_ms(1_000, 5_000) == 500


def test_the_time_since_the_oldest_window_counts_and_missing_windows_are_full_ones() -> None:
    rate = Rate(WINDOWS)
    rate.record(8_000, 0)
    rate.record(8_000, 2_400)

    # 2.4 s, of them 2 full windows, and 8 more: 10.4 s for 16,000 bytes.
    assert rate.throttle_ms(1_000, 2_400) == 5_600
    assert round(rate.per_second(2_400)) == 1_538


def test_what_happened_before_all_windows_is_forgotten() -> None:
    rate = Rate(WINDOWS)
    rate.record(50_000, 0)

    assert rate.throttle_ms(1_000, 10_999) > 0
    assert rate.throttle_ms(1_000, 11_000) == 0


def test_a_window_that_overlaps_the_first_is_kept_by_its_last_event() -> None:
    rate = Rate(WINDOWS)
    rate.record(1, 0)
    rate.record(20_000, 999)

    # The sample began at 0, but its last event is 11 s old only at 11,999.
    assert rate.throttle_ms(1_000, 11_998) > 0
    assert rate.throttle_ms(1_000, 11_999) == 0


def test_the_ring_has_one_sample_more_than_windows_and_overwrites_the_oldest() -> None:
    rate = Rate(Windows(2, 1_000))
    for second in range(3):
        rate.record(1_000, second * 1_000)

    # At 2,000 the sample of 0 is 2 s old and emptied; two of 1,000 bytes over 1 s are left, and more than one
    # full window is never added.
    assert rate.per_second(2_000) == 2_000
    rate.record(1_000, 3_000)
    assert rate.per_second(3_000) == 2_000


def test_what_is_taken_back_was_never_there() -> None:
    rate = Rate(WINDOWS)
    rate.record(30_000, 0)
    rate.record(-30_000, 0)

    assert rate.throttle_ms(1_000, 0) == 0


def test_a_limit_of_nothing_throttles_for_as_long_as_an_answer_can_tell() -> None:
    rate = Rate(WINDOWS)
    assert rate.throttle_ms(0, 0) == 0
    rate.record(1, 0)

    assert rate.throttle_ms(0, 0) == 2**31 - 1


def test_a_bucket_starts_full_falls_below_zero_and_tells_when_it_is_level_again() -> None:
    bucket = TokenBucket(WINDOWS)

    assert bucket.tokens(1, 0) == 11
    bucket.take(15, 1, 0)
    assert bucket.throttle_ms(1, 0) == 4_000
    assert bucket.throttle_ms(1, 1_155) == 2_845
    assert bucket.throttle_ms(1, 4_000) == 0


def test_a_bucket_grows_no_further_than_its_burst() -> None:
    bucket = TokenBucket(WINDOWS)
    bucket.take(5, 2, 0)

    assert bucket.tokens(2, 1_000) == 19
    assert bucket.tokens(2, 100_000) == 22
