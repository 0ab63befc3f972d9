#include "support_cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "fxtap/tensor.h"
#include "tensor/convert.h"
#include "tensor/view.h"

static uint64_t seed = 11;

static uint64_t next_random(void)
{
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return seed >> 33;
}

static fxtap_view view_of(const void *data, fxtap_dtype dtype, int32_t ndim, const int64_t *shape,
                          const int64_t *strides)
{
    return (fxtap_view){.data = data, .dtype = dtype, .ndim = ndim, .shape = shape, .strides = strides};
}

/* Byte offset of row-major position `p`: the definition, one index at a time. */
static ptrdiff_t offset_of(const fxtap_view *view, uint64_t p)
{
    ptrdiff_t offset = 0;
    for (int32_t i = view->ndim - 1; i >= 0; i--) {
        offset += (ptrdiff_t)((int64_t)(p % (uint64_t)view->shape[i]) * view->strides[i]);
        p /= (uint64_t)view->shape[i];
    }
    return offset * (ptrdiff_t)fxtap_dtype_size(view->dtype);
}

/* Gathers [first, first+count) and compares it with the definition; in FORTRAN order positions count along memory. */
static void expect_gather(const fxtap_view *view, uint64_t first, uint64_t count)
{
    size_t size = fxtap_dtype_size(view->dtype);
    char *out = malloc(count * size + 1);
    assert_non_null(out);
    out[count * size] = 'x';
    assert_int_equal(fxtap_view_gather(view, first, count, out), FXTAP_OK);
    bool fortran = fxtap_view_order(view) == FXTAP_ORDER_FORTRAN;
    for (uint64_t i = 0; i < count; i++) {
        const char *wanted = (const char *)view->data;
        wanted += fortran ? (ptrdiff_t)((first + i) * size) : offset_of(view, first + i);
        if (memcmp(out + i * size, wanted, size) != 0) {
            fail_msg("element %llu of [%llu, %llu)", (unsigned long long)i, (unsigned long long)first,
                     (unsigned long long)(first + count));
        }
    }
    assert_int_equal(out[count * size], 'x');
    free(out);
}

#define POOL_BYTES (1 << 20)
static unsigned char pool[POOL_BYTES];

static void fill_pool(void)
{
    for (size_t i = 0; i < POOL_BYTES; i++) {
        pool[i] = (unsigned char)next_random();
    }
}

/*
 * A random view whose elements are all in the pool: permuted, sliced, negative and zero strides, unaligned addresses.
 */
static void random_view(fxtap_view *view, int64_t *shape, int64_t *strides)
{
    static const fxtap_dtype types[] = {FXTAP_UINT8, FXTAP_INT16, FXTAP_FLOAT32, FXTAP_INT64, FXTAP_COMPLEX128};
    int32_t ndim = (int32_t)(next_random() % 6);
    int64_t span = 1;
    int32_t order[6] = {0, 1, 2, 3, 4, 5};
    for (int32_t i = ndim - 1; i > 0; i--) {
        int32_t k = (int32_t)(next_random() % (uint64_t)(i + 1));
        int32_t kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
    int64_t low = 0;
    for (int32_t k = 0; k < ndim; k++) {
        int32_t i = order[k];
        shape[i] = 1 + (int64_t)(next_random() % 9);
        strides[i] = span * (1 + (next_random() % 4 == 0));
        span = strides[i] * shape[i];
        if (next_random() % 5 == 0) {
            strides[i] = -strides[i];
            low += (shape[i] - 1) * -strides[i];
        } else if (next_random() % 7 == 0) {
            strides[i] = 0;
        }
    }
    *view = view_of(NULL, types[next_random() % COUNT_OF(types)], ndim, shape, strides);
    ptrdiff_t size = (ptrdiff_t)fxtap_dtype_size(view->dtype);
    if ((span + 1) * size > POOL_BYTES) {
        view->dtype = FXTAP_UINT8;
        size = 1;
    }
    view->data = pool + low * size + (next_random() % 2);
}

static void test_random_views(void **state)
{
    (void)state;
    fill_pool();
    for (int round = 0; round < 3000; round++) {
        int64_t shape[6];
        int64_t strides[6];
        fxtap_view view;
        uint64_t count;
        random_view(&view, shape, strides);
        assert_int_equal(fxtap_view_check(&view), FXTAP_OK);
        assert_int_equal(fxtap_view_count(&view, &count), FXTAP_OK);
        if (count > 60000) {
            continue;
        }
        expect_gather(&view, 0, count);
        uint64_t first = next_random() % (count + 1);
        expect_gather(&view, first, next_random() % (count - first + 1));
    }
}

/* One part (a number, or half of a complex one) is negated: by its sign bit, or in two's complement. */
static void negate_part(char *part, size_t size, bool is_float)
{
    unsigned carry = 1;
    if (is_float) {
        part[size - 1] = (char)(part[size - 1] ^ (char)0x80);
        return;
    }
    for (size_t i = 0; i < size; i++) {
        carry += (unsigned char)~part[i];
        part[i] = (char)carry;
        carry >>= 8;
    }
}

/* The saved form of the element at `at`, by the definitions of the flags. */
static void saved_element(const fxtap_view *view, const char *at, char out[16])
{
    char raw[16];
    size_t size = fxtap_dtype_size(view->dtype);
    bool is_complex = fxtap_dtype_class_of(view->dtype) == FXTAP_CLASS_COMPLEX;
    size_t part = is_complex ? size / 2 : size;
    for (size_t i = 0; i < size; i++) {
        size_t swapped = i / part * part + (part - 1 - i % part);
        raw[i] = at[(view->flags & FXTAP_VIEW_BIG_ENDIAN) != 0 ? swapped : i];
    }
    fx_convert_to_saved(view->dtype, raw, 1, out);
    fxtap_dtype_class class_of = fxtap_dtype_class_of(view->dtype);
    bool is_float = class_of == FXTAP_CLASS_FLOAT || is_complex;
    size_t saved_part = fxtap_dtype_size(fxtap_dtype_saved(view->dtype)) / (is_complex ? 2 : 1);
    if ((view->flags & FXTAP_VIEW_NEG) != 0) {
        negate_part(out, saved_part, is_float);
    }
    if (is_complex && ((view->flags & FXTAP_VIEW_NEG) != 0) != ((view->flags & FXTAP_VIEW_CONJ) != 0)) {
        negate_part(out + saved_part, saved_part, true);
    }
}

static void test_random_views_of_any_dtype(void **state)
{
    (void)state;
    static char out[60000 * 16];
    fill_pool();
    for (int round = 0; round < 3000; round++) {
        int64_t shape[6];
        int64_t strides[6];
        fxtap_view view;
        uint64_t count;
        random_view(&view, shape, strides);
        fxtap_dtype dtype = (fxtap_dtype)(1 + next_random() % (FXTAP_DTYPE_COUNT - 1));
        bool is_elementwise = dtype != FXTAP_STRING && dtype != FXTAP_FLOAT4_E2M1FN_X2;
        if (!is_elementwise || fxtap_dtype_saved(dtype) == FXTAP_DTYPE_NONE ||
            fxtap_dtype_size(dtype) > fxtap_dtype_size(view.dtype)) {
            continue; /* fits into the memory that random_view() reserved */
        }
        view.dtype = dtype;
        view.flags = (uint32_t)(next_random() % 8) & (dtype == FXTAP_BOOL ? ~FXTAP_VIEW_NEG : ~0u);
        assert_int_equal(fxtap_view_count(&view, &count), FXTAP_OK);
        uint64_t first = next_random() % (count + 1);
        uint64_t n = next_random() % (count - first + 1);
        n = n < 60000 ? n : 60000;
        assert_int_equal(fxtap_view_gather(&view, first, n, out), FXTAP_OK);
        bool fortran = fxtap_view_order(&view) == FXTAP_ORDER_FORTRAN;
        size_t size = fxtap_dtype_size(dtype);
        size_t saved_size = fxtap_dtype_size(fxtap_dtype_saved(dtype));
        for (uint64_t i = 0; i < n; i++) {
            char wanted[16];
            ptrdiff_t offset = fortran ? (ptrdiff_t)((first + i) * size) : offset_of(&view, first + i);
            saved_element(&view, (const char *)view.data + offset, wanted);
            assert_memory_equal(out + i * saved_size, wanted, saved_size);
        }
    }
}

static void test_large_transposes(void **state)
{
    (void)state;
    fill_pool();
    const fxtap_dtype types[] = {FXTAP_UINT8, FXTAP_FLOAT16, FXTAP_FLOAT32, FXTAP_FLOAT64, FXTAP_COMPLEX128};
    for (size_t t = 0; t < COUNT_OF(types); t++) {
        const int64_t shape[] = {2, 67, 129};
        const int64_t strides[] = {67 * 129, 1, 67};
        fxtap_view view = view_of(pool, types[t], 3, shape, strides);
        expect_gather(&view, 0, 2 * 67 * 129);
        expect_gather(&view, 100, 67 * 129 + 700);
    }
}

static void test_orders(void **state)
{
    (void)state;
    static const struct {
        int32_t ndim;
        int64_t shape[4], strides[4];
        fxtap_order order;
    } cases[] = {
        {0, {0}, {0}, FXTAP_ORDER_C},
        {1, {5}, {1}, FXTAP_ORDER_C},
        {1, {5}, {2}, FXTAP_ORDER_STRIDED},
        {1, {5}, {-1}, FXTAP_ORDER_STRIDED},
        {1, {5}, {0}, FXTAP_ORDER_STRIDED},
        {1, {1}, {77}, FXTAP_ORDER_C},
        {2, {3, 4}, {4, 1}, FXTAP_ORDER_C},
        {2, {3, 4}, {1, 3}, FXTAP_ORDER_FORTRAN},
        {2, {3, 4}, {8, 2}, FXTAP_ORDER_STRIDED},
        {2, {1, 4}, {99, 1}, FXTAP_ORDER_C},
        {2, {4, 1}, {1, 99}, FXTAP_ORDER_C},
        {2, {0, 4}, {7, 9}, FXTAP_ORDER_C},
        {3, {2, 3, 4}, {1, 2, 6}, FXTAP_ORDER_FORTRAN},
        {3, {2, 1, 4}, {1, 5, 2}, FXTAP_ORDER_FORTRAN},
        {4, {2, 3, 4, 5}, {60, 1, 15, 3}, FXTAP_ORDER_STRIDED},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        fxtap_view view = view_of(pool, FXTAP_FLOAT32, cases[i].ndim, cases[i].shape, cases[i].strides);
        assert_int_equal(fxtap_view_order(&view), cases[i].order);
    }
    const int64_t shape[] = {3, 4};
    fxtap_view view = view_of(pool, FXTAP_FLOAT32, 2, shape, NULL);
    assert_int_equal(fxtap_view_order(&view), FXTAP_ORDER_C);
    const int64_t strides[] = {1, 3};
    fxtap_view pairs = view_of(pool, FXTAP_FLOAT4_E2M1FN_X2, 2, shape, strides);
    assert_int_equal(fxtap_view_order(&pairs), FXTAP_ORDER_STRIDED);
}

static void test_extent(void **state)
{
    (void)state;
    const void *first;
    const void *end;
    const int64_t shape[] = {3, 4};
    const int64_t strides[] = {-8, 2};
    fxtap_view view = view_of(pool + 1000, FXTAP_FLOAT32, 2, shape, strides);
    fxtap_view_extent(&view, &first, &end);
    assert_ptr_equal(first, pool + 1000 - 64);
    assert_ptr_equal(end, pool + 1000 + 28);
    const int64_t empty[] = {3, 0};
    view.shape = empty;
    fxtap_view_extent(&view, &first, &end);
    assert_null(first);
    assert_null(end);
    view = view_of(pool, FXTAP_INT16, 0, NULL, NULL);
    fxtap_view_extent(&view, &first, &end);
    assert_ptr_equal(first, pool);
    assert_ptr_equal(end, pool + 2);
}

static void test_impossible_views_are_refused(void **state)
{
    (void)state;
    uint64_t count = 42;
    char out[64];
    const int64_t negative[] = {2, -1};
    const int64_t huge[] = {INT64_C(1) << 32, INT64_C(1) << 32};
    const int64_t huge_empty[] = {INT64_C(1) << 62, INT64_C(1) << 62, 0};
    const int64_t pair[] = {2, 2};
    const int64_t far[] = {INT64_MAX, INT64_MAX};
    const int64_t down[] = {INT64_MIN, 1};
    const fxtap_view bad[] = {
        view_of(pool, FXTAP_FLOAT32, 2, negative, NULL),
        view_of(pool, FXTAP_FLOAT32, 2, huge, NULL),
        view_of(pool, FXTAP_FLOAT32, -1, pair, NULL),
        view_of(pool, FXTAP_FLOAT32, FXTAP_MAX_DIMS + 1, pair, NULL),
        view_of(pool, FXTAP_FLOAT32, 2, NULL, NULL),
        view_of(pool, FXTAP_FLOAT32, 2, pair, far),
        view_of(pool, FXTAP_UINT8, 2, pair, down),
        view_of(NULL, FXTAP_FLOAT32, 2, pair, NULL),
        view_of(pool, FXTAP_STRING, 2, pair, NULL),
        view_of(pool, FXTAP_DTYPE_NONE, 2, pair, NULL),
        view_of(pool, (fxtap_dtype)99, 2, pair, NULL),
        view_of(pool, FXTAP_FLOAT4_E2M1FN_X2, 0, NULL, NULL),
        {.data = pool, .dtype = FXTAP_BOOL, .ndim = 2, .shape = pair, .flags = FXTAP_VIEW_NEG},
        {.data = pool, .dtype = FXTAP_INT8, .ndim = 2, .shape = pair, .flags = 64},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(fxtap_view_check(&bad[i]), FXTAP_E_INVALID);
        assert_int_equal(fxtap_view_gather(&bad[i], 0, 1, out), FXTAP_E_INVALID);
        assert_true(strlen(fxtap_error_message()) > 10);
    }
    assert_int_equal(fxtap_view_count(&bad[0], &count), FXTAP_E_INVALID);
    assert_int_equal(fxtap_view_count(&bad[1], &count), FXTAP_E_INVALID);
    assert_int_equal(count, 42);
    fxtap_view empty = view_of(NULL, FXTAP_FLOAT32, 3, huge_empty, NULL);
    assert_int_equal(fxtap_view_check(&empty), FXTAP_OK);
    assert_int_equal(fxtap_view_count(&empty, &count), FXTAP_OK);
    assert_int_equal(count, 0);
    assert_int_equal(fxtap_view_gather(&empty, 0, 0, out), FXTAP_OK);
}

static void test_ranges_outside_are_refused(void **state)
{
    (void)state;
    char out[64];
    const int64_t shape[] = {4};
    fxtap_view view = view_of(pool, FXTAP_INT8, 1, shape, NULL);
    assert_int_equal(fxtap_view_gather(&view, 4, 0, out), FXTAP_OK);
    assert_int_equal(fxtap_view_gather(&view, 4, 1, out), FXTAP_E_INVALID);
    assert_int_equal(fxtap_view_gather(&view, 5, 0, out), FXTAP_E_INVALID);
    assert_int_equal(fxtap_view_gather(&view, 1, UINT64_MAX, out), FXTAP_E_INVALID);
    view.dtype = FXTAP_QINT8;
    assert_int_equal(fxtap_view_gather(&view, 0, 1, out), FXTAP_E_UNSUPPORTED);
}

static void test_conj_and_neg(void **state)
{
    (void)state;
    const float numbers[] = {1, 2, -3, 4};
    float out[4];
    const int64_t two[] = {2};
    fxtap_view view = view_of(numbers, FXTAP_COMPLEX64, 1, two, NULL);
    view.flags = FXTAP_VIEW_CONJ;
    assert_int_equal(fxtap_view_gather(&view, 0, 2, out), FXTAP_OK);
    assert_memory_equal(out, ((const float[]){1, -2, -3, -4}), sizeof out);
    view.flags = FXTAP_VIEW_NEG;
    assert_int_equal(fxtap_view_gather(&view, 0, 2, out), FXTAP_OK);
    assert_memory_equal(out, ((const float[]){-1, -2, 3, -4}), sizeof out);
    view.flags = FXTAP_VIEW_NEG | FXTAP_VIEW_CONJ;
    assert_int_equal(fxtap_view_gather(&view, 1, 1, out), FXTAP_OK);
    assert_memory_equal(out, ((const float[]){3, 4}), 8);
    /* torch.tensor([1+2j]).conj().imag: every second float, with the neg bit */
    const int64_t one[] = {1};
    const int64_t step[] = {2};
    view = view_of(numbers + 1, FXTAP_FLOAT32, 1, one, step);
    view.flags = FXTAP_VIEW_NEG;
    assert_int_equal(fxtap_view_gather(&view, 0, 1, out), FXTAP_OK);
    assert_true(out[0] == -2.0f);
    const int8_t small[] = {-128, 5};
    int8_t small_out[2];
    view = view_of(small, FXTAP_INT8, 1, two, NULL);
    view.flags = FXTAP_VIEW_NEG;
    assert_int_equal(fxtap_view_gather(&view, 0, 2, small_out), FXTAP_OK);
    assert_int_equal(small_out[0], -128);
    assert_int_equal(small_out[1], -5);
    const uint16_t halves[] = {0x3F80, 0xC000};
    view = view_of(halves, FXTAP_BFLOAT16, 1, two, NULL);
    view.flags = FXTAP_VIEW_NEG;
    assert_int_equal(fxtap_view_gather(&view, 0, 2, out), FXTAP_OK);
    assert_memory_equal(out, ((const float[]){-1, 2}), 8);
}

static void test_big_endian(void **state)
{
    (void)state;
    const unsigned char bytes[] = {0x3F, 0x80, 0, 0, 0xC0, 0, 0, 0};
    float out[2];
    const int64_t two[] = {2};
    const int64_t one[] = {1};
    fxtap_view view = view_of(bytes, FXTAP_FLOAT32, 1, two, NULL);
    view.flags = FXTAP_VIEW_BIG_ENDIAN;
    assert_int_equal(fxtap_view_gather(&view, 0, 2, out), FXTAP_OK);
    assert_memory_equal(out, ((const float[]){1, -2}), 8);
    view = view_of(bytes, FXTAP_COMPLEX64, 1, one, NULL);
    view.flags = FXTAP_VIEW_BIG_ENDIAN | FXTAP_VIEW_CONJ;
    assert_int_equal(fxtap_view_gather(&view, 0, 1, out), FXTAP_OK);
    assert_memory_equal(out, ((const float[]){1, 2}), 8);
    view = view_of(bytes, FXTAP_BFLOAT16, 1, one, NULL);
    view.flags = FXTAP_VIEW_BIG_ENDIAN;
    assert_int_equal(fxtap_view_gather(&view, 0, 1, out), FXTAP_OK);
    assert_true(out[0] == 1.0f);
}

/* More elements than the conversion block holds, read backwards, from any position. */
static void test_strided_conversion(void **state)
{
    (void)state;
    enum { N = 10000 };
    static uint16_t source[2 * N];
    static float out[N];
    for (unsigned i = 0; i < 2 * N; i++) {
        source[i] = (uint16_t)next_random();
    }
    const int64_t shape[] = {N};
    const int64_t strides[] = {-2};
    fxtap_view view = view_of(source + 2 * N - 1, FXTAP_BFLOAT16, 1, shape, strides);
    const uint64_t starts[] = {0, 1, 4095, 4096, 9999};
    for (size_t s = 0; s < COUNT_OF(starts); s++) {
        assert_int_equal(fxtap_view_gather(&view, starts[s], N - starts[s], out), FXTAP_OK);
        for (uint64_t i = starts[s]; i < N; i++) {
            uint32_t wanted = (uint32_t)source[2 * N - 1 - 2 * i] << 16;
            assert_memory_equal(&out[i - starts[s]], &wanted, 4);
        }
    }
}

static void test_float4_is_unpacked_along_the_last_axis(void **state)
{
    (void)state;
    /* the pairs of a 2 x 3 array of bytes, read transposed: 3 x 2 bytes, 3 x 4 values */
    const unsigned char bytes[] = {0x10, 0x32, 0x54, 0x76, 0x98, 0xBA};
    static const float value[16] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0f, -0.5, -1, -1.5, -2, -3, -4, -6};
    const int64_t shape[] = {3, 2};
    const int64_t strides[] = {1, 3};
    fxtap_view view = view_of(bytes, FXTAP_FLOAT4_E2M1FN_X2, 2, shape, strides);
    float wanted[12];
    for (int i = 0; i < 12; i++) {
        unsigned byte = bytes[i / 4 + i % 4 / 2 * 3];
        wanted[i] = value[i % 2 == 0 ? byte & 15 : byte >> 4];
    }
    uint64_t n_bytes;
    int64_t saved[FXTAP_MAX_DIMS];
    assert_int_equal(fxtap_view_saved_bytes(&view, &n_bytes), FXTAP_OK);
    assert_int_equal(n_bytes, 48);
    fx_view_saved_shape(&view, saved);
    assert_int_equal(saved[0], 3);
    assert_int_equal(saved[1], 4);
    for (uint64_t first = 0; first <= 12; first++) {
        for (uint64_t count = 0; count <= 12 - first; count++) {
            float out[13];
            out[count] = 99;
            assert_int_equal(fxtap_view_gather(&view, first, count, out), FXTAP_OK);
            assert_memory_equal(out, wanted + first, count * 4);
            assert_true(out[count] == 99);
        }
    }
}

static void test_saved_form(void **state)
{
    (void)state;
    const int64_t shape[] = {3, 4};
    const int64_t strides[] = {1, 3};
    fxtap_view view = view_of(pool, FXTAP_FLOAT32, 2, shape, strides);
    assert_true(fx_view_is_saved_form(&view));
    view.flags = FXTAP_VIEW_CONJ;
    assert_true(fx_view_is_saved_form(&view));
    view.flags = FXTAP_VIEW_NEG;
    assert_false(fx_view_is_saved_form(&view));
    view.flags = FXTAP_VIEW_BIG_ENDIAN;
    assert_false(fx_view_is_saved_form(&view));
    view.dtype = FXTAP_BOOL;
    assert_true(fx_view_is_saved_form(&view));
    view.flags = 0;
    view.dtype = FXTAP_BFLOAT16;
    assert_false(fx_view_is_saved_form(&view));
    view.dtype = FXTAP_BITS16;
    assert_true(fx_view_is_saved_form(&view));
}

static void test_strides_of_an_impossible_but_empty_shape(void **state)
{
    (void)state;
    const int64_t shape[] = {INT64_C(1) << 32, INT64_C(1) << 32, INT64_C(1) << 32, 0, 5};
    int64_t strides[5];
    for (int fortran = 0; fortran < 2; fortran++) {
        fx_contiguous_strides(5, shape, fortran != 0, strides);
        const fxtap_view view = view_of(NULL, FXTAP_FLOAT32, 5, shape, strides);
        assert_int_equal(fxtap_view_check(&view), FXTAP_OK);
        assert_int_equal(fxtap_view_order(&view), FXTAP_ORDER_C);
    }
    const int64_t pairs[] = {0, INT64_MAX};
    const fxtap_view view = view_of(NULL, FXTAP_FLOAT4_E2M1FN_X2, 2, pairs, NULL);
    assert_int_equal(fxtap_view_check(&view), FXTAP_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_views),
        cmocka_unit_test(test_random_views_of_any_dtype),
        cmocka_unit_test(test_large_transposes),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_extent),
        cmocka_unit_test(test_impossible_views_are_refused),
        cmocka_unit_test(test_ranges_outside_are_refused),
        cmocka_unit_test(test_conj_and_neg),
        cmocka_unit_test(test_big_endian),
        cmocka_unit_test(test_strided_conversion),
        cmocka_unit_test(test_float4_is_unpacked_along_the_last_axis),
        cmocka_unit_test(test_saved_form),
        cmocka_unit_test(test_strides_of_an_impossible_but_empty_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
