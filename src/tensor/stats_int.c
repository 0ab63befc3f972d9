/*
 * stats_int.c - integers and bool: exact sums, one rounding at the end.
 */
#include <limits.h>
#include <math.h>

#include "tensor/stats_parts.h"

typedef unsigned __int128 u128;

#define TOP_BIT (UINT64_C(1) << 63)

static fx_u192 u192_add(fx_u192 a, fx_u192 b)
{
    fx_u192 sum = {.low = a.low + b.low, .high = a.high + b.high};
    sum.high += sum.low < a.low;
    return sum;
}

static fx_u192 u192_sub(fx_u192 a, fx_u192 b)
{
    fx_u192 difference = {.low = a.low - b.low, .high = a.high - b.high};
    difference.high -= a.low < b.low;
    return difference;
}

static fx_u192 u192_product(u128 a, uint64_t b)
{
    u128 low = (u128)(uint64_t)a * b;
    u128 high = (u128)(uint64_t)(a >> 64) * b + (low >> 64);
    return (fx_u192){.low = high << 64 | (uint64_t)low, .high = (uint64_t)(high >> 64)};
}

static long double u192_value(fx_u192 a)
{
    return ldexpl((long double)a.high, 128) + ldexpl((long double)(uint64_t)(a.low >> 64), 64) +
           (long double)(uint64_t)a.low;
}

void fx_stats_take_ints(fx_stats_state *state, const fx_int_scan *scan)
{
    u128 squares = ((u128)scan->square_high << 32) + scan->square_low;
    fx_stats_range(state, scan->min, scan->max);
    state->zero_count += scan->n_zero;
    state->sum += scan->sum;
    state->square_sum = u192_add(state->square_sum, (fx_u192){.low = squares});
}

void fx_stats_add_i64_part(fx_stats_state *state, const void *elements, size_t n)
{
    const unsigned char *bytes = elements;
    fx_int_scan scan;
    if (fx_stats_in_use()->scan_i64(elements, n, &scan)) {
        fx_stats_take_ints(state, &scan);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        int64_t value;
        memcpy(&value, bytes + 8 * i, sizeof value);
        uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
        fx_stats_range(state, value, value);
        state->zero_count += value == 0;
        state->sum += value;
        state->square_sum = u192_add(state->square_sum, (fx_u192){.low = (u128)magnitude * magnitude});
    }
}

void fx_stats_add_u64_part(fx_stats_state *state, const void *elements, size_t n)
{
    const unsigned char *bytes = elements;
    for (size_t i = 0; i < n; i++) {
        uint64_t value;
        memcpy(&value, bytes + 8 * i, sizeof value);
        int64_t key = (int64_t)(value ^ TOP_BIT);
        fx_stats_range(state, key, key);
        state->zero_count += value == 0;
        state->sum += value;
        state->square_sum = u192_add(state->square_sum, (fx_u192){.low = (u128)value * value});
    }
}

static void finish_int_range(const fx_stats_state *state, fxtap_stats *out)
{
    uint64_t flip = state->saved == FXTAP_UINT64 ? TOP_BIT : 0;
    out->has_range = state->count > 0;
    if (!out->has_range) {
        return;
    }
    out->min_int = (int64_t)((uint64_t)state->key_min ^ flip);
    out->max_int = (int64_t)((uint64_t)state->key_max ^ flip);
    out->min = flip ? (double)(uint64_t)out->min_int : (double)out->min_int;
    out->max = flip ? (double)(uint64_t)out->max_int : (double)out->max_int;
    out->abs_max = fmax(fabs(out->min), fabs(out->max));
}

/*
 * The sum of (x - q)^2 with q the integer nearest the mean is an exact integer, and at most half of it is
 * subtracted after that (r^2/n with |r| <= n/2 and the sum at least |r|): no cancellation.
 */
static long double int_m2(const fx_stats_state *state)
{
    __int128 n = (__int128)state->count;
    __int128 sum = state->sum;
    __int128 centre = (sum + (sum < 0 ? -(n / 2) : n / 2)) / n;
    long double rest = (long double)(sum - centre * n);
    u128 sum_magnitude = sum < 0 ? -(u128)sum : (u128)sum;
    uint64_t centre_magnitude = (uint64_t)(centre < 0 ? -centre : centre);
    /* sum and centre have the same sign (or centre is 0): sum (x-q)^2 = sum x^2 - 2 q sum + n q^2 */
    fx_u192 cross = u192_product(sum_magnitude, centre_magnitude);
    fx_u192 squares = u192_product((u128)centre_magnitude * centre_magnitude, state->count);
    fx_u192 exact = u192_sub(u192_add(state->square_sum, squares), u192_add(cross, cross));
    return u192_value(exact) - rest * rest / (long double)n;
}

void fx_stats_finish_ints(const fx_stats_state *state, fxtap_stats *out)
{
    long double n = (long double)state->count;
    long double squares = u192_value(state->square_sum);
    finish_int_range(state, out);
    out->finite_count = state->count;
    out->mean = out->std = out->rms = out->l2_norm = NAN;
    if (state->count > 0) {
        out->mean = (double)((long double)state->sum / n);
        out->std = (double)sqrtl(int_m2(state) / n);
        out->rms = (double)sqrtl(squares / n);
        out->l2_norm = (double)sqrtl(squares);
    }
}
