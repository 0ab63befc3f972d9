#include "tensor/stats.h"

#include <limits.h>
#include <math.h>

#include "tensor/cpu.h"
#include "tensor/hash.h"
#include "tensor/stats_kernel.h"
#include "tensor/stats_parts.h"
#include "tensor/view.h"
#include "util/error.h"
#include "util/float_mode.h"
#include "util/memory.h"

/* Read and hashed while in the second-level cache; a multiple of the part size. */
#define BLOCK_BYTES (4 * FX_STATS_PART_BYTES)

/* A part of float64 with magnitudes outside these limits is summed in long double: its squares do not fit float64. */
#define F64_SQUARE_MAX 1e145
#define F64_SQUARE_MIN 1e-140

const fx_stats_kernels *fx_stats_in_use(void)
{
#if defined(__x86_64__)
    static const fx_stats_kernels *const levels[] = {&fx_stats_scalar, &fx_stats_avx2, &fx_stats_avx512};
    return levels[fx_cpu()];
#else
    return &fx_stats_scalar;
#endif
}

/* The exponent of the smallest normal number, for dtypes that are saved as float32 or consist of float32. */
static int min_normal_exponent(fxtap_dtype dtype)
{
    switch (dtype) {
    case FXTAP_FLOAT16:
    case FXTAP_COMPLEX32:
    case FXTAP_FLOAT8_E5M2:
        return -14;
    case FXTAP_FLOAT8_E4M3FN:
    case FXTAP_FLOAT8_E4M3:
        return -6;
    case FXTAP_FLOAT8_E4M3FNUZ:
        return -7;
    case FXTAP_FLOAT8_E5M2FNUZ:
        return -15;
    case FXTAP_FLOAT8_E8M0FNU:
        return -127; /* powers of two only, none subnormal: bits 0 */
    case FXTAP_FLOAT8_E3M4:
    case FXTAP_FLOAT6_E3M2FN:
        return -2;
    case FXTAP_FLOAT8_E4M3B11FNUZ:
        return -10;
    case FXTAP_FLOAT4_E2M1FN_X2:
    case FXTAP_FLOAT6_E2M3FN:
        return 0;
    default:
        return -126;
    }
}

static uint64_t min_normal_bits(fxtap_dtype dtype, fxtap_dtype saved)
{
    if (saved == FXTAP_FLOAT64 || saved == FXTAP_COMPLEX128) {
        return UINT64_C(1) << 52;
    }
    return (uint64_t)(min_normal_exponent(dtype) + 127) << 23;
}

bool fx_stats_defined(fxtap_dtype dtype)
{
    fxtap_dtype saved = fxtap_dtype_saved(dtype);
    return saved != FXTAP_DTYPE_NONE && fxtap_dtype_class_of(saved) != FXTAP_CLASS_TEXT;
}

void fx_stats_init(fx_stats_state *state, fxtap_dtype dtype)
{
    fxtap_dtype saved = fxtap_dtype_saved(dtype);
    *state = (fx_stats_state){
        .dtype = dtype,
        .saved = saved,
        .min_normal_bits = min_normal_bits(dtype, saved),
        .key_min = INT64_MAX,
        .key_max = INT64_MIN,
    };
}

void fx_stats_join(fx_stats_state *state, uint64_t n, long double mean, long double mean_imag, long double m2)
{
    if (n == 0) {
        return;
    }
    uint64_t total = state->n_finite + n;
    long double weight = (long double)n / (long double)total;
    long double delta = mean - state->mean;
    long double delta_imag = mean_imag - state->mean_imag;
    long double distance = delta * delta + delta_imag * delta_imag;
    state->mean = state->n_finite == 0 ? mean : state->mean + delta * weight;
    state->mean_imag = state->n_finite == 0 ? mean_imag : state->mean_imag + delta_imag * weight;
    state->m2 += m2 + distance * (long double)state->n_finite * weight;
    state->n_finite = total;
}

void fx_stats_range(fx_stats_state *state, int64_t key_min, int64_t key_max)
{
    state->key_min = key_min < state->key_min ? key_min : state->key_min;
    state->key_max = key_max > state->key_max ? key_max : state->key_max;
}

static uint64_t take_scan(fx_stats_state *state, const fx_float_scan *scan, size_t n)
{
    state->nan_count += scan->n_nan;
    state->pos_inf_count += scan->n_pos_inf;
    state->neg_inf_count += scan->n_neg_inf;
    state->zero_count += scan->n_zero;
    state->subnormal_count += scan->n_subnormal;
    fx_stats_range(state, scan->key_min, scan->key_max);
    return n - scan->n_nan - scan->n_pos_inf - scan->n_neg_inf;
}

static void take_spread(fx_stats_state *state, const fx_float_spread *spread, uint64_t n, double mean)
{
    long double rest = fx_lanes_sum(spread->sum);
    long double m2 = fx_lanes_sum(spread->square_sum) - rest * rest / (long double)n;
    fx_stats_join(state, n, mean + rest / (long double)n, 0, m2 > 0 ? m2 : 0);
}

static void add_f32_part(fx_stats_state *state, const void *elements, size_t n)
{
    fx_float_scan scan;
    fx_float_spread spread;
    fx_stats_in_use()->scan_f32(elements, n, (uint32_t)state->min_normal_bits, &scan);
    uint64_t n_finite = take_scan(state, &scan, n);
    if (n_finite > 0) {
        double mean = fx_lanes_sum(scan.sum) / (double)n_finite;
        fx_stats_in_use()->spread_f32(elements, n, n_finite == n, mean, &spread);
        take_spread(state, &spread, n_finite, mean);
    }
}

static void add_f16_part(fx_stats_state *state, const void *elements, size_t n)
{
    float wide[FX_STATS_PART_BYTES / 4];
    const unsigned char *bytes = elements;
    for (size_t done = 0; done < n;) {
        size_t count = n - done < FX_STATS_PART_BYTES / 4 ? n - done : FX_STATS_PART_BYTES / 4;
        fx_stats_in_use()->widen_f16(bytes + 2 * done, count, wide);
        add_f32_part(state, wide, count);
        done += count;
    }
}

/* A part whose squares or sum float64 cannot hold. */
static void add_f64_part_wide(fx_stats_state *state, const void *elements, size_t n, uint64_t n_finite)
{
    const unsigned char *bytes = elements;
    long double sum = 0, m2 = 0, value_mean;
    double value;
    for (size_t i = 0; i < n; i++) {
        memcpy(&value, bytes + 8 * i, sizeof value);
        sum += isfinite(value) ? (long double)value : 0;
    }
    value_mean = sum / (long double)n_finite;
    for (size_t i = 0; i < n; i++) {
        memcpy(&value, bytes + 8 * i, sizeof value);
        long double distance = isfinite(value) ? (long double)value - value_mean : 0;
        m2 += distance * distance;
    }
    fx_stats_join(state, n_finite, value_mean, 0, m2);
}

/* Decided by the largest finite magnitude; with an infinity in the part it is unknown, so the wide sum is used. */
static bool needs_wide(uint64_t abs_max_bits)
{
    double abs_max = fx_f64_from_bits(abs_max_bits);
    return abs_max > F64_SQUARE_MAX || (abs_max < F64_SQUARE_MIN && abs_max_bits != 0);
}

static void add_f64_part(fx_stats_state *state, const void *elements, size_t n)
{
    fx_float_scan scan;
    fx_float_spread spread;
    fx_stats_in_use()->scan_f64(elements, n, state->min_normal_bits, &scan);
    uint64_t n_finite = take_scan(state, &scan, n);
    if (n_finite == 0) {
        return;
    }
    if (needs_wide(scan.abs_max)) {
        add_f64_part_wide(state, elements, n, n_finite);
        return;
    }
    double mean = fx_lanes_sum(scan.sum) / (double)n_finite;
    fx_stats_in_use()->spread_f64(elements, n, n_finite == n, mean, &spread);
    take_spread(state, &spread, n_finite, mean);
}

static void (*part_function(fxtap_dtype saved))(fx_stats_state *, const void *, size_t)
{
    switch (saved) {
    case FXTAP_FLOAT16:
        return add_f16_part;
    case FXTAP_FLOAT32:
        return add_f32_part;
    case FXTAP_FLOAT64:
        return add_f64_part;
    case FXTAP_COMPLEX64:
        return fx_stats_add_c64_part;
    case FXTAP_COMPLEX128:
        return fx_stats_add_c128_part;
    case FXTAP_INT64:
        return fx_stats_add_i64_part;
    case FXTAP_UINT64:
        return fx_stats_add_u64_part;
    default:
        return NULL;
    }
}

static void (*int_scan(fxtap_dtype saved))(const void *, size_t, fx_int_scan *)
{
    switch (saved) {
    case FXTAP_BOOL:
        return fx_stats_in_use()->scan_bool;
    case FXTAP_UINT8:
        return fx_stats_in_use()->scan_u8;
    case FXTAP_UINT16:
        return fx_stats_in_use()->scan_u16;
    case FXTAP_UINT32:
        return fx_stats_in_use()->scan_u32;
    case FXTAP_INT8:
        return fx_stats_in_use()->scan_i8;
    case FXTAP_INT16:
        return fx_stats_in_use()->scan_i16;
    default:
        return fx_stats_in_use()->scan_i32;
    }
}

void fx_stats_update(fx_stats_state *state, const void *elements, size_t n_elems)
{
    const unsigned char *bytes = elements;
    size_t elem_bytes = fxtap_dtype_size(state->saved);
    size_t part_elems = FX_STATS_PART_BYTES / elem_bytes;
    void (*add_part)(fx_stats_state *, const void *, size_t) = part_function(state->saved);
    state->count += n_elems;
    for (size_t done = 0; done < n_elems;) {
        size_t n = n_elems - done < part_elems ? n_elems - done : part_elems;
        if (add_part != NULL) {
            add_part(state, bytes + done * elem_bytes, n);
        } else {
            fx_int_scan scan;
            int_scan(state->saved)(bytes + done * elem_bytes, n, &scan);
            fx_stats_take_ints(state, &scan);
        }
        done += n;
    }
}

static void finish_moments(const fx_stats_state *state, fxtap_stats *out)
{
    long double n = (long double)state->n_finite;
    long double square = state->m2 + n * (state->mean * state->mean + state->mean_imag * state->mean_imag);
    out->finite_count = state->n_finite;
    out->mean = out->mean_imag = out->std = out->rms = out->l2_norm = NAN;
    if (state->n_finite > 0) {
        out->mean = (double)state->mean;
        out->mean_imag = (double)state->mean_imag;
        out->std = (double)sqrtl(state->m2 / n);
        out->rms = (double)sqrtl(square / n);
        out->l2_norm = (double)sqrtl(square);
    }
}

/* The float64 of a float's magnitude bits; subnormals use integers, since a flush-to-zero mode would lose them. */
static double magnitude_of_bits(fxtap_dtype saved, uint64_t bits)
{
    if (saved == FXTAP_FLOAT64) {
        return fx_f64_from_bits(bits);
    }
    if (bits < UINT64_C(1) << 23) {
        return (double)bits * 0x1p-149;
    }
    return (double)fx_f32_from_bits((uint32_t)bits);
}

static void finish_range(const fx_stats_state *state, fxtap_stats *out)
{
    out->has_range = state->key_min <= state->key_max;
    if (out->has_range) {
        uint64_t low = fx_key_magnitude(state->key_min), high = fx_key_magnitude(state->key_max);
        double low_value = magnitude_of_bits(state->saved, low), high_value = magnitude_of_bits(state->saved, high);
        out->min = state->key_min < 0 ? -low_value : low_value;
        out->max = state->key_max < 0 ? -high_value : high_value;
        out->abs_max = low > high ? low_value : high_value;
    }
}

void fx_stats_finish(const fx_stats_state *state, fxtap_stats *out)
{
    *out = (fxtap_stats){
        .dtype = state->dtype,
        .count = state->count,
        .nan_count = state->nan_count,
        .pos_inf_count = state->pos_inf_count,
        .neg_inf_count = state->neg_inf_count,
        .zero_count = state->zero_count,
        .subnormal_count = state->subnormal_count,
        .abs_max = NAN,
    };
    fxtap_dtype_class kind = fxtap_dtype_class_of(state->saved);
    if (kind == FXTAP_CLASS_FLOAT) {
        finish_range(state, out);
        finish_moments(state, out);
    } else if (kind == FXTAP_CLASS_COMPLEX) {
        out->abs_max = state->count > state->nan_count ? state->abs_max : NAN;
        finish_moments(state, out);
    } else {
        fx_stats_finish_ints(state, out);
    }
}

void fx_stats_saved(fxtap_dtype dtype, const void *elements, size_t n_elems, fxtap_stats *out, fxtap_hash128 *hash_out)
{
    fx_stats_state state;
    fx_hasher hasher;
    const unsigned char *bytes = elements;
    fx_stats_init(&state, dtype);
    size_t n_bytes = n_elems * fxtap_dtype_size(state.saved);
    size_t block_elems = BLOCK_BYTES / fxtap_dtype_size(state.saved);
    if (n_bytes <= BLOCK_BYTES || hash_out == NULL) {
        fx_stats_update(&state, elements, n_elems);
        fx_stats_finish(&state, out);
        if (hash_out != NULL) {
            *hash_out = fx_hash_bytes(elements, n_bytes);
        }
        return;
    }
    fx_hasher_init(&hasher);
    for (size_t done = 0; done < n_elems; done += block_elems) {
        size_t n = n_elems - done < block_elems ? n_elems - done : block_elems;
        const unsigned char *block = bytes + done * fxtap_dtype_size(state.saved);
        fx_stats_update(&state, block, n);
        fx_hasher_update(&hasher, block, n * fxtap_dtype_size(state.saved));
    }
    fx_stats_finish(&state, out);
    *hash_out = fx_hasher_finish(&hasher);
}

/* A view that cannot be read in place: gathered block by block into saved form. */
static fxtap_status stats_gathered(const fxtap_view *view, uint64_t n_saved, fxtap_stats *out, fxtap_hash128 *hash_out)
{
    fx_stats_state state;
    fx_hasher hasher;
    fxtap_status status = FXTAP_OK;
    fx_stats_init(&state, view->dtype);
    size_t elem_bytes = fxtap_dtype_size(state.saved);
    uint64_t block_elems = BLOCK_BYTES / elem_bytes;
    if (block_elems > n_saved) {
        block_elems = n_saved;
    }
    unsigned char *block = fx_alloc((size_t)block_elems * elem_bytes);
    if (block == NULL) {
        return FXTAP_E_NOMEM;
    }
    fx_hasher_init(&hasher);
    for (uint64_t done = 0; done < n_saved; done += block_elems) {
        uint64_t n = n_saved - done < block_elems ? n_saved - done : block_elems;
        status = fxtap_view_gather(view, done, n, block);
        if (status != FXTAP_OK) {
            goto done;
        }
        fx_stats_update(&state, block, (size_t)n);
        if (hash_out != NULL) {
            fx_hasher_update(&hasher, block, (size_t)n * elem_bytes);
        }
    }
    fx_stats_finish(&state, out);
    if (hash_out != NULL) {
        *hash_out = fx_hasher_finish(&hasher);
    }
done:
    fx_free(block);
    return status;
}

fxtap_status fxtap_stats_compute(const fxtap_view *view, fxtap_stats *out, fxtap_hash128 *hash_out)
{
    FX_REQUIRE(view);
    FX_REQUIRE(out);
    uint64_t n_bytes;
    fxtap_status status = fxtap_view_check(view);
    if (status != FXTAP_OK) {
        return status;
    }
    if (!fx_stats_defined(view->dtype)) {
        return fx_error(FXTAP_E_UNSUPPORTED, "no statistics for elements of type %s", fxtap_dtype_name(view->dtype));
    }
    status = fxtap_view_saved_bytes(view, &n_bytes);
    if (status != FXTAP_OK) {
        return status;
    }
    uint64_t n_saved = n_bytes / fxtap_dtype_size(fxtap_dtype_saved(view->dtype));
    fx_float_mode callers = fx_float_mode_begin();
    if (fx_view_is_saved_form(view)) {
        fx_stats_saved(view->dtype, view->data, (size_t)n_saved, out, hash_out);
    } else {
        status = stats_gathered(view, n_saved, out, hash_out);
    }
    fx_float_mode_end(callers);
    return status;
}
