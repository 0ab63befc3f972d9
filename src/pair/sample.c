/*
 * sample.c - compares a few elements of two values' files. Statistics do not distinguish a value from its transpose, or
 * from any other order of the same elements; elements at the same indices do.
 */
#include <fcntl.h>
#include <math.h>
#include <string.h>

#include "pair/traits.h"
#include "tensor/npy_file.h"
#include "tensor/values.h"
#include "tensor/view.h"

#define N_SAMPLES 16
#define WITHIN 2e-2 /* relative to the largest magnitude */

/*
 * Reads elements evenly spaced in row-major order, some of them twice if there are few; false if they are not numbers.
 */
static bool read_samples(const fxtap_view *view, double *out)
{
    uint64_t count;
    if (fxtap_view_count(view, &count) != FXTAP_OK || count == 0 ||
        fxtap_dtype_class_of(view->dtype) != FXTAP_CLASS_FLOAT) {
        return false;
    }
    for (uint64_t i = 0; i < N_SAMPLES; i++) {
        unsigned char element[16];
        uint64_t part = count / N_SAMPLES, at = part == 0 ? i % count : i * part + i * 7 % part;
        if (fx_view_gather_rows(view, at, 1, element) != FXTAP_OK) {
            return false;
        }
        fx_values_to_f64(fxtap_dtype_saved(view->dtype), element, 1, &out[i]);
    }
    return true;
}

static const double *load(fx_arena *arena, fx_trait *trait)
{
    const fxtap_tensor_info *value = trait->value;
    fxtap_npy *file;
    if (trait->is_sampled || value->path == NULL) {
        return trait->samples;
    }
    trait->is_sampled = true;
    if (fx_npy_open_at(AT_FDCWD, value->path, value->path, 0, &file) != FXTAP_OK) {
        return NULL; /* judging will report the error */
    }
    double *samples = fx_arena_calloc(arena, N_SAMPLES, sizeof *samples);
    if (samples != NULL && read_samples(fxtap_npy_view(file), samples)) {
        trait->samples = samples;
    }
    fxtap_npy_close(file);
    return trait->samples;
}

/* A NaN is near a NaN, and near no number. */
static bool is_near(double a, double b, double distance)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= distance;
}

fx_sampling fx_compare_samples(fx_arena *arena, fx_trait *golden, fx_trait *target)
{
    const double *a = load(arena, golden), *b = load(arena, target);
    if (a == NULL || b == NULL) {
        return FX_SAMPLES_UNKNOWN;
    }
    double largest = fmax(golden->value->stats.abs_max, target->value->stats.abs_max);
    for (size_t i = 0; i < N_SAMPLES; i++) {
        if (!is_near(a[i], b[i], WITHIN * largest)) {
            return FX_SAMPLES_DIFFER;
        }
    }
    return FX_SAMPLES_AGREE;
}
