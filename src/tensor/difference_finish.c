/*
 * difference_finish.c - the metrics from the sums.
 */
#include <math.h>

#include "tensor/difference_parts.h"

void fx_difference_keep_non_finite(fx_difference *difference, const fx_difference_point *point)
{
    size_t capacity = difference->options.n_worst, at = difference->n_non_finite;
    while (at > 0 && difference->non_finite[at - 1].index > point->index) {
        at--;
    }
    if (at == capacity) {
        return;
    }
    size_t last = difference->n_non_finite < capacity ? difference->n_non_finite++ : capacity - 1;
    memmove(&difference->non_finite[at + 1], &difference->non_finite[at], (last - at) * sizeof *point);
    difference->non_finite[at] = *point;
}

static double cosine_of(const fx_difference *difference)
{
    long double golden = sqrtl(difference->golden_square_sum), target = sqrtl(difference->target_square_sum);
    if (golden == 0 || target == 0) {
        return golden == target ? 1 : 0;
    }
    double cosine = (double)(difference->product_sum / golden / target);
    return cosine > 1 ? 1 : cosine < -1 ? -1 : cosine;
}

static double relative_l2(const fx_difference *difference)
{
    if (difference->square_sum == 0) {
        return 0;
    }
    return (double)sqrtl(difference->square_sum / difference->golden_square_sum);
}

static void finish_sums(const fx_difference *difference, fx_difference_result *out)
{
    long double n = (long double)difference->n_finite;
    out->golden_l2 = (double)sqrtl(difference->golden_square_sum);
    out->target_l2 = (double)sqrtl(difference->target_square_sum);
    out->cosine = cosine_of(difference);
    out->rel_l2 = relative_l2(difference);
    out->euclidean = (double)sqrtl(difference->square_sum);
    if (difference->n_finite > 0) {
        out->mean_abs_err = (double)(difference->error_sum / n);
        out->rmse = (double)sqrtl(difference->square_sum / n);
    } else if (difference->mismatched > 0) {
        out->max_abs_err = out->max_rel_err = out->mean_abs_err = out->rmse = NAN;
        out->euclidean = out->cosine = out->rel_l2 = NAN;
    }
}

static double share(uint64_t part, uint64_t count)
{
    return count > 0 ? (double)part / (double)count : 1;
}

void fx_difference_finish(const fx_difference *difference, fx_difference_result *out)
{
    *out = (fx_difference_result){
        .identical_bits = !difference->differs,
        .count = difference->count,
        .n_finite = difference->n_finite,
        .mismatched = difference->mismatched,
        .nan_mismatched = difference->nan_mismatched,
        .inf_mismatched = difference->inf_mismatched,
        .first_non_finite = difference->n_non_finite > 0 ? difference->non_finite[0].index : UINT64_MAX,
        .max_rel_err = difference->max_rel.error,
        .max_rel_index = difference->max_rel.index,
        .max_abs_exact = difference->max_abs_exact,
        .within_1e3 = share(difference->within_1e3, difference->count),
        .within_5e3 = share(difference->within_5e3, difference->count),
        .max_ulp = difference->has_ulp ? (double)difference->max_ulp : (double)NAN,
        .n_worst = difference->n_non_finite,
    };
    memcpy(out->worst, difference->non_finite, difference->n_non_finite * sizeof *out->worst);
    for (size_t i = 0; i < difference->n_worst && out->n_worst < difference->options.n_worst; i++) {
        out->worst[out->n_worst++] = difference->worst[i];
    }
    if (difference->n_worst > 0) {
        out->max_abs_err = difference->worst[0].error;
        out->max_abs_index = difference->worst[0].index;
    }
    finish_sums(difference, out);
}

fxtap_status fx_difference_compute(const fxtap_view *golden, const fxtap_view *target,
                                   const fx_difference_options *options, fx_difference_result *out)
{
    fx_difference difference;
    uint64_t n_bytes;
    fx_difference_init(&difference, options);
    fxtap_status status = fxtap_view_check(golden);
    if (status == FXTAP_OK) {
        status = fxtap_view_saved_bytes(golden, &n_bytes);
    }
    if (status != FXTAP_OK) {
        return status;
    }
    size_t elem_bytes = fxtap_dtype_size(fxtap_dtype_saved(golden->dtype));
    status = fx_difference_run(&difference, golden, target, 0, elem_bytes > 0 ? n_bytes / elem_bytes : 0);
    if (status == FXTAP_OK) {
        fx_difference_finish(&difference, out);
    }
    return status;
}
