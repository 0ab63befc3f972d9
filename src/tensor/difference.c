#include "tensor/difference.h"

#include <inttypes.h>
#include <math.h>

#include "tensor/cpu.h"
#include "tensor/difference_parts.h"
#include "tensor/values.h"
#include "tensor/view.h"
#include "util/error.h"
#include "util/memory.h"

/* IN_I64 if a side has 64-bit integers; a part that float64 holds exactly is still computed in float64. */
typedef enum arithmetic { IN_F16, IN_F32, IN_F64, IN_I64, IN_COMPLEX } arithmetic;

/* One side: read in place, or gathered part by part into `gathered`. */
typedef struct source {
    const fxtap_view *view;
    fxtap_dtype saved;
    size_t elem_bytes;
    bool in_place;
    bool by_rows; /* gather in row-major order, whatever the order of the view */
    void *gathered;
    void *values; /* a part converted to float32 or float64, if the saved dtype is neither */
} source;

static const fx_difference_kernels *kernels(void)
{
#if defined(__x86_64__)
    static const fx_difference_kernels *const levels[] = {&fx_difference_scalar, &fx_difference_avx2,
                                                          &fx_difference_avx512};
    return levels[fx_cpu()];
#else
    return &fx_difference_scalar;
#endif
}

void fx_difference_init(fx_difference *difference, const fx_difference_options *options)
{
    *difference = (fx_difference){.options = *options};
    size_t n = options->n_worst;
    difference->options.n_worst = n < 1 ? 1 : n > FX_DIFFERENCE_WORST_MAX ? FX_DIFFERENCE_WORST_MAX : n;
}

/* The row-major position of an element, given its position in column-major order. */
static uint64_t row_major(const fxtap_view *view, uint64_t position)
{
    uint64_t index = 0, stride = 1, total = 1;
    for (int32_t i = 0; i < view->ndim; i++) {
        total *= (uint64_t)view->shape[i];
    }
    stride = total;
    for (int32_t i = 0; i < view->ndim; i++) {
        stride /= (uint64_t)view->shape[i];
        index += position % (uint64_t)view->shape[i] * stride;
        position /= (uint64_t)view->shape[i];
    }
    return index;
}

static uint64_t index_of(const fx_difference_place *place, size_t i)
{
    uint64_t position = place->first + i;
    return place->fortran != NULL ? row_major(place->fortran, position) : position;
}

static bool comes_before(const fx_difference_point *a, const fx_difference_point *b)
{
    return a->error > b->error || (a->error == b->error && a->index < b->index);
}

static void insert_worst(fx_difference *difference, const fx_difference_point *point)
{
    size_t capacity = difference->options.n_worst;
    size_t at = difference->n_worst;
    while (at > 0 && comes_before(point, &difference->worst[at - 1])) {
        at--;
    }
    if (at == capacity) {
        return;
    }
    size_t last = difference->n_worst < capacity ? difference->n_worst++ : capacity - 1;
    memmove(&difference->worst[at + 1], &difference->worst[at], (last - at) * sizeof *point);
    difference->worst[at] = *point;
    if (difference->n_worst == capacity) {
        difference->floor = difference->worst[capacity - 1].error;
    }
}

static void offer_ratio(fx_difference *difference, fx_difference_point point, double error)
{
    double magnitude = fabs(point.golden);
    bool overflows = isinf(error) && !isinf(difference->max_rel.error); /* the product below may overflow too */
    if (magnitude != 0 && (overflows || error > difference->max_rel.error * magnitude)) {
        point.error = error / magnitude;
        difference->max_rel = point;
    }
}

void fx_difference_offer(fx_difference_place *place, size_t i, double error, double golden, double target)
{
    fx_difference *difference = place->difference;
    fx_difference_point point = {.index = index_of(place, i), .error = error, .golden = golden, .target = target};
    if (error > difference->floor) {
        insert_worst(difference, &point);
    }
    offer_ratio(difference, point, error);
}

void fx_difference_non_finite(fx_difference_place *place, size_t i, double golden, double target, bool equal)
{
    fx_difference *difference = place->difference;
    bool golden_nan = isnan(golden), target_nan = isnan(target);
    if (equal) {
        difference->within_1e3++;
        difference->within_5e3++;
        return;
    }
    uint64_t index = index_of(place, i);
    difference->mismatched++;
    difference->nan_mismatched += golden_nan != target_nan;
    difference->inf_mismatched += golden_nan == target_nan;
    fx_difference_keep_non_finite(difference, &(fx_difference_point){index, INFINITY, golden, target});
}

void fx_difference_lane_sums(const fx_difference_part *part, fx_difference_sums *out)
{
    *out = (fx_difference_sums){
        .error = fx_lanes_sum(part->error),
        .square = fx_lanes_sum(part->square),
        .golden = fx_lanes_sum(part->golden),
        .target = fx_lanes_sum(part->target),
        .product = fx_lanes_sum(part->product),
    };
}

bool fx_difference_sums_lost(const fx_difference_sums *sums)
{
    const long double tiny = 1e-250L, huge = 1e300L;
    return !(sums->square < huge && sums->golden < huge && sums->target < huge && sums->error < huge) ||
           (sums->square < tiny && sums->error != 0) || sums->golden < tiny || sums->target < tiny;
}

void fx_difference_take(fx_difference *difference, const fx_difference_part *part, const fx_difference_sums *sums,
                        size_t n, size_t n_finite)
{
    difference->count += n;
    difference->n_finite += n_finite;
    difference->mismatched += part->n_outside;
    difference->within_1e3 += n_finite - part->n_over_1e3;
    difference->within_5e3 += n_finite - part->n_over_5e3;
    difference->error_sum += sums->error;
    difference->square_sum += sums->square;
    difference->golden_square_sum += sums->golden;
    difference->target_square_sum += sums->target;
    difference->product_sum += sums->product;
}

/* Identical float64 (or parts of complex128) whose norm exceeds float64. */
static long double wide_norm(const void *elements, size_t n_parts, size_t parts_per_element)
{
    long double sum = 0;
    for (size_t i = 0; i < n_parts; i += parts_per_element) {
        double parts[2] = {0, 0};
        memcpy(parts, (const unsigned char *)elements + 8 * i, 8 * parts_per_element);
        if (isfinite(parts[0]) && isfinite(parts[1])) {
            sum += (long double)parts[0] * parts[0] + (long double)parts[1] * parts[1];
        }
    }
    return sqrtl(sum);
}

/* Identical bits: no differences, and the norms come from the statistics of one side. */
static void add_equal(fx_difference *difference, const fx_difference_pair *pair)
{
    fxtap_stats stats;
    fx_stats_saved(pair->golden_dtype, pair->golden, pair->n, &stats, NULL);
    long double norm = stats.finite_count > 0 ? stats.l2_norm : 0;
    if (isinf(norm)) {
        size_t n_parts = pair->golden_dtype == FXTAP_COMPLEX128 ? 2 : 1;
        norm = wide_norm(pair->golden, pair->n * n_parts, n_parts);
    }
    difference->count += pair->n;
    difference->n_finite += stats.finite_count;
    difference->within_1e3 += pair->n;
    difference->within_5e3 += pair->n;
    difference->golden_square_sum += norm * norm;
    difference->target_square_sum += norm * norm;
    difference->product_sum += norm * norm;
}

static bool is_finite_pair(double golden, double target)
{
    return isfinite(golden) && isfinite(target);
}

#define CHUNK 256

static const void *element(const void *elements, fxtap_dtype dtype, size_t i)
{
    return (const unsigned char *)elements + fxtap_dtype_size(dtype) * i;
}

/* Processes the pairs of a part that are not finite; returns their number. */
static size_t count_non_finite(fx_difference_place *place, fxtap_dtype dtype, const void *golden, const void *target,
                               size_t n)
{
    double b[CHUNK], a[CHUNK];
    size_t found = 0;
    for (size_t first = 0; first < n; first += CHUNK) {
        size_t count = n - first < CHUNK ? n - first : CHUNK;
        fx_values_to_f64(dtype, element(golden, dtype, first), count, b);
        fx_values_to_f64(dtype, element(target, dtype, first), count, a);
        for (size_t i = 0; i < count; i++) {
            if (!is_finite_pair(b[i], a[i])) {
                fx_difference_non_finite(place, first + i, b[i], a[i], a[i] == b[i] || (isnan(a[i]) && isnan(b[i])));
                found++;
            }
        }
    }
    return found;
}

static void add_f16(fx_difference_place *place, const void *golden, const void *target, size_t n)
{
    fx_difference_part part;
    fx_difference_sums sums;
    bool finite = kernels()->finite_f16(golden, target, n);
    kernels()->part_f16(golden, target, n, finite, place, &part);
    fx_difference_lane_sums(&part, &sums);
    size_t n_bad = finite ? 0 : count_non_finite(place, FXTAP_FLOAT16, golden, target, n);
    fx_difference_take(place->difference, &part, &sums, n, n - n_bad);
}

static void add_f32(fx_difference_place *place, const void *golden, const void *target, size_t n)
{
    fx_difference_part part;
    fx_difference_sums sums;
    bool finite = kernels()->finite_f32(golden, target, n);
    kernels()->part_f32(golden, target, n, finite, place, &part);
    fx_difference_lane_sums(&part, &sums);
    size_t n_bad = finite ? 0 : count_non_finite(place, FXTAP_FLOAT32, golden, target, n);
    fx_difference_take(place->difference, &part, &sums, n, n - n_bad);
}

/* Also offers ratios of errors over float64: the kernels compare with a product that may overflow too. */
static void wide_sums(fx_difference_place *place, const void *golden, const void *target, size_t n,
                      fx_difference_sums *out)
{
    *out = (fx_difference_sums){0};
    for (size_t i = 0; i < n; i++) {
        double narrow_b, narrow_a;
        memcpy(&narrow_b, (const unsigned char *)golden + 8 * i, sizeof narrow_b);
        memcpy(&narrow_a, (const unsigned char *)target + 8 * i, sizeof narrow_a);
        if (is_finite_pair(narrow_b, narrow_a)) {
            long double b = narrow_b, a = narrow_a, error = fabsl(a - b);
            if (isinf(narrow_a - narrow_b)) {
                offer_ratio(place->difference, (fx_difference_point){index_of(place, i), 0, narrow_b, narrow_a},
                            INFINITY);
            }
            out->error += error;
            out->square += error * error;
            out->golden += b * b;
            out->target += a * a;
            out->product += a * b;
        }
    }
}

/* `any_size`: a side is float64, so its squares may be out of range. */
static void add_f64(fx_difference_place *place, const void *golden, const void *target, size_t n, bool any_size)
{
    fx_difference_part part;
    fx_difference_sums sums;
    bool finite = kernels()->finite_f64(golden, target, n);
    kernels()->part_f64(golden, target, n, finite, place, &part);
    fx_difference_lane_sums(&part, &sums);
    if (any_size && fx_difference_sums_lost(&sums)) {
        wide_sums(place, golden, target, n, &sums);
    }
    size_t n_bad = finite ? 0 : count_non_finite(place, FXTAP_FLOAT64, golden, target, n);
    fx_difference_take(place->difference, &part, &sums, n, n - n_bad);
}

static bool is_64_bit_integer(fxtap_dtype dtype)
{
    return dtype == FXTAP_INT64 || dtype == FXTAP_UINT64;
}

static bool is_small_float(fxtap_dtype dtype)
{
    return dtype == FXTAP_FLOAT16 || dtype == FXTAP_FLOAT32;
}

static arithmetic arithmetic_of(fxtap_dtype golden, fxtap_dtype target)
{
    fxtap_dtype_class b = fxtap_dtype_class_of(golden), a = fxtap_dtype_class_of(target);
    if (b == FXTAP_CLASS_COMPLEX || a == FXTAP_CLASS_COMPLEX) {
        return IN_COMPLEX;
    }
    if (is_small_float(golden) && is_small_float(target)) {
        return golden == FXTAP_FLOAT16 && target == FXTAP_FLOAT16 ? IN_F16 : IN_F32;
    }
    bool integers = b != FXTAP_CLASS_FLOAT && a != FXTAP_CLASS_FLOAT;
    return integers && (is_64_bit_integer(golden) || is_64_bit_integer(target)) ? IN_I64 : IN_F64;
}

static const void *values_of(const source *from, const void *raw, size_t n, arithmetic how)
{
    if (from->values == NULL) {
        return raw;
    }
    if (how == IN_F32) {
        fx_values_to_f32(from->saved, raw, n, from->values);
    } else {
        fx_values_to_f64(from->saved, raw, n, from->values);
    }
    return from->values;
}

/* Integers in float64: their errors are below 2^53, thus exact. */
static void take_exact(fx_difference *difference, const fx_difference_pair *pair)
{
    bool integers = fxtap_dtype_class_of(pair->golden_dtype) != FXTAP_CLASS_FLOAT &&
                    fxtap_dtype_class_of(pair->target_dtype) != FXTAP_CLASS_FLOAT;
    if (integers && difference->n_worst > 0) {
        double error = difference->worst[0].error; /* larger ones come exactly from difference_int.c */
        uint64_t exact = error < 0x1p53 ? (uint64_t)error : 0;
        difference->max_abs_exact = exact > difference->max_abs_exact ? exact : difference->max_abs_exact;
    }
}

/* True if all values of an integer dtype are below 2^52 in magnitude: float64 holds them and their differences. */
static bool fits_f64(fxtap_dtype dtype, const void *elements, size_t n)
{
    uint64_t bits = 0;
    if (!is_64_bit_integer(dtype)) {
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        int64_t value;
        memcpy(&value, (const unsigned char *)elements + 8 * i, sizeof value);
        bits |= (uint64_t)(dtype == FXTAP_INT64 ? value ^ (value >> 63) : value);
    }
    return bits < UINT64_C(1) << 52;
}

static void add_differing(fx_difference_place *place, const source *golden, const source *target,
                          const fx_difference_pair *pair, arithmetic how)
{
    fx_difference *difference = place->difference;
    difference->differs = true;
    if (how == IN_COMPLEX) {
        fx_difference_add_complex(place, pair);
        return;
    }
    if (how == IN_I64 &&
        !(fits_f64(pair->golden_dtype, pair->golden, pair->n) && fits_f64(pair->target_dtype, pair->target, pair->n))) {
        fx_difference_add_i64(place, pair);
        return;
    }
    fx_difference_pair values = *pair;
    values.golden = values_of(golden, pair->golden, pair->n, how);
    values.target = values_of(target, pair->target, pair->n, how);
    if (how == IN_F16) {
        add_f16(place, values.golden, values.target, pair->n);
    } else if (how == IN_F32) {
        add_f32(place, values.golden, values.target, pair->n);
    } else {
        add_f64(place, values.golden, values.target, pair->n,
                pair->golden_dtype == FXTAP_FLOAT64 || pair->target_dtype == FXTAP_FLOAT64);
        take_exact(difference, pair);
    }
    if (difference->has_ulp) {
        uint64_t ulp = fx_difference_ulp(kernels(), difference->options.judged, pair);
        difference->max_ulp = ulp > difference->max_ulp ? ulp : difference->max_ulp;
    }
}

static fxtap_status read_part(const source *from, uint64_t first, size_t n, const void **out)
{
    if (from->in_place) {
        *out = (const unsigned char *)from->view->data + first * from->elem_bytes;
        return FXTAP_OK;
    }
    *out = from->gathered;
    return from->by_rows ? fx_view_gather_rows(from->view, first, n, from->gathered)
                         : fxtap_view_gather(from->view, first, n, from->gathered);
}

static fxtap_status run_parts(fx_difference_place *place, const source *golden, const source *target, uint64_t first,
                              uint64_t count)
{
    arithmetic how = arithmetic_of(golden->saved, target->saved);
    for (uint64_t done = 0; done < count;) {
        uint64_t left = count - done;
        fx_difference_pair pair = {.golden_dtype = golden->saved, .target_dtype = target->saved};
        pair.n = left < FX_DIFFERENCE_PART_ELEMS ? (size_t)left : FX_DIFFERENCE_PART_ELEMS;
        place->first = first + done;
        fxtap_status status = read_part(golden, place->first, pair.n, &pair.golden);
        if (status == FXTAP_OK) {
            status = read_part(target, place->first, pair.n, &pair.target);
        }
        if (status != FXTAP_OK) {
            return status;
        }
        if (golden->saved == target->saved && memcmp(pair.golden, pair.target, pair.n * golden->elem_bytes) == 0) {
            add_equal(place->difference, &pair);
        } else {
            add_differing(place, golden, target, &pair, how);
        }
        done += pair.n;
    }
    return FXTAP_OK;
}

static fxtap_status check_side(const fxtap_view *view)
{
    fxtap_status status = fxtap_view_check(view);
    if (status == FXTAP_OK && !fx_stats_defined(view->dtype)) {
        return fx_error(FXTAP_E_UNSUPPORTED, "cannot compare elements of type %s", fxtap_dtype_name(view->dtype));
    }
    return status;
}

static fxtap_status check_request(const fxtap_view *golden, const fxtap_view *target, uint64_t first, uint64_t count)
{
    int64_t golden_shape[FXTAP_MAX_DIMS], target_shape[FXTAP_MAX_DIMS];
    fxtap_status status = check_side(golden);
    if (status == FXTAP_OK) {
        status = check_side(target);
    }
    if (status != FXTAP_OK) {
        return status;
    }
    fx_view_saved_shape(golden, golden_shape);
    fx_view_saved_shape(target, target_shape);
    if (golden->ndim != target->ndim ||
        (golden->ndim > 0 && memcmp(golden_shape, target_shape, (size_t)golden->ndim * sizeof *golden_shape) != 0)) {
        return fx_error(FXTAP_E_INVALID, "cannot compare tensors of different shapes element by element");
    }
    uint64_t n = fx_view_saved_count(golden);
    if (first > n || count > n - first) {
        return fx_error(FXTAP_E_INVALID, "%" PRIu64 " elements from %" PRIu64 " on are outside a view of %" PRIu64,
                        count, first, n);
    }
    return FXTAP_OK;
}

static void open_source(source *out, const fxtap_view *view, bool by_rows)
{
    *out = (source){.view = view, .saved = fxtap_dtype_saved(view->dtype), .by_rows = by_rows};
    out->elem_bytes = fxtap_dtype_size(out->saved);
    out->in_place = fx_view_is_saved_form(view) && !(by_rows && fxtap_view_order(view) == FXTAP_ORDER_FORTRAN);
}

/* Allocates the buffers of a side for a part of `n` elements; false: out of memory. */
static bool make_buffers(source *side, size_t n, arithmetic how)
{
    size_t value_bytes = how == IN_F32 ? sizeof(float) : sizeof(double);
    fxtap_dtype value = how == IN_F32 ? FXTAP_FLOAT32 : FXTAP_FLOAT64;
    if (!side->in_place) {
        side->gathered = fx_alloc(n * side->elem_bytes);
        if (side->gathered == NULL) {
            return false;
        }
    }
    if (how != IN_F16 && how != IN_COMPLEX && side->saved != value) {
        side->values = fx_alloc(n * value_bytes);
        return side->values != NULL;
    }
    return true;
}

static void close_source(source *side)
{
    fx_free(side->gathered);
    fx_free(side->values);
}

bool fx_difference_has_ulp(fxtap_dtype judged)
{
    return judged == FXTAP_FLOAT16 || judged == FXTAP_BFLOAT16 || judged == FXTAP_FLOAT32 || judged == FXTAP_FLOAT64;
}

static bool has_ulp(fxtap_dtype judged, fxtap_dtype golden, fxtap_dtype target)
{
    return fx_difference_has_ulp(judged) && fxtap_dtype_class_of(golden) == FXTAP_CLASS_FLOAT &&
           fxtap_dtype_class_of(target) == FXTAP_CLASS_FLOAT;
}

fxtap_status fx_difference_run(fx_difference *difference, const fxtap_view *golden, const fxtap_view *target,
                               uint64_t first, uint64_t count)
{
    source b, a;
    fxtap_status status = check_request(golden, target, first, count);
    if (status != FXTAP_OK) {
        return status;
    }
    bool by_columns =
        fxtap_view_order(golden) == FXTAP_ORDER_FORTRAN && fxtap_view_order(target) == FXTAP_ORDER_FORTRAN;
    size_t n = count < FX_DIFFERENCE_PART_ELEMS ? (size_t)count : FX_DIFFERENCE_PART_ELEMS;
    open_source(&b, golden, !by_columns);
    open_source(&a, target, !by_columns);
    arithmetic how = arithmetic_of(b.saved, a.saved);
    fx_difference_place place = {.difference = difference, .fortran = by_columns ? golden : NULL};
    difference->differs = difference->differs || b.saved != a.saved;
    difference->has_ulp = difference->has_ulp || has_ulp(difference->options.judged, b.saved, a.saved);
    if (make_buffers(&b, n, how) && make_buffers(&a, n, how)) {
        status = run_parts(&place, &b, &a, first, count);
    } else {
        status = FXTAP_E_NOMEM;
    }
    close_source(&b);
    close_source(&a);
    return status;
}
