/*
 * stats_ints.h - the integer loops, vectorised by the compiler: included once for each level. All sums are exact, so
 * their order does not matter. SUM and SQUARE hold a whole part: FX_STATS_PART_BYTES / sizeof(TYPE) elements.
 */
#include "tensor/stats_kernel.h"

#define DEFINE_INT_SCAN(NAME, TYPE, VALUE, SUM, SQUARE)                                                                \
    static void NAME(const void *elements, size_t n, fx_int_scan *out)                                                 \
    {                                                                                                                  \
        const unsigned char *bytes = elements;                                                                         \
        TYPE min = 0, max = 0;                                                                                         \
        SUM sum = 0;                                                                                                   \
        SQUARE squares = 0;                                                                                            \
        uint32_t n_zero = 0;                                                                                           \
        if (n > 0) {                                                                                                   \
            memcpy(&min, bytes, sizeof min);                                                                           \
            min = max = (TYPE)VALUE(min);                                                                              \
        }                                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                                               \
            TYPE element;                                                                                              \
            memcpy(&element, bytes + sizeof element * i, sizeof element);                                              \
            element = (TYPE)VALUE(element);                                                                            \
            min = element < min ? element : min;                                                                       \
            max = element > max ? element : max;                                                                       \
            n_zero += element == 0;                                                                                    \
            sum += (SUM)element;                                                                                       \
            squares += (SQUARE)((SQUARE)element * (SQUARE)element);                                                    \
        }                                                                                                              \
        *out = (fx_int_scan){.min = min, .max = max, .n_zero = n_zero, .sum = (int64_t)sum};                           \
        out->square_low = (uint64_t)squares;                                                                           \
    }

/* 32 bits: a square has up to 64, so its halves are summed separately. */
#define DEFINE_INT_SCAN32(NAME, TYPE, MAGNITUDE)                                                                       \
    static void NAME(const void *elements, size_t n, fx_int_scan *out)                                                 \
    {                                                                                                                  \
        const unsigned char *bytes = elements;                                                                         \
        TYPE min = 0, max = 0;                                                                                         \
        int64_t sum = 0;                                                                                               \
        uint64_t low = 0, high = 0;                                                                                    \
        uint32_t n_zero = 0;                                                                                           \
        if (n > 0) {                                                                                                   \
            memcpy(&min, bytes, sizeof min);                                                                           \
            max = min;                                                                                                 \
        }                                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                                               \
            TYPE element;                                                                                              \
            memcpy(&element, bytes + sizeof element * i, sizeof element);                                              \
            int64_t value = element;                                                                                   \
            uint64_t square = (uint64_t)MAGNITUDE(element) * MAGNITUDE(element);                                       \
            min = element < min ? element : min;                                                                       \
            max = element > max ? element : max;                                                                       \
            n_zero += element == 0;                                                                                    \
            sum += value;                                                                                              \
            low += square & UINT32_MAX;                                                                                \
            high += square >> 32;                                                                                      \
        }                                                                                                              \
        *out = (fx_int_scan){                                                                                          \
            .min = min, .max = max, .n_zero = n_zero, .sum = sum, .square_low = low, .square_high = high};             \
    }

#define AS_IT_IS(x) (x)
#define AS_BOOL(x) ((x) != 0)
#define I32_MAGNITUDE(x) ((x) < 0 ? 0 - (uint32_t)(x) : (uint32_t)(x))

DEFINE_INT_SCAN(scan_i8, int8_t, AS_IT_IS, int32_t, int32_t)
DEFINE_INT_SCAN(scan_u8, uint8_t, AS_IT_IS, uint32_t, uint32_t)
DEFINE_INT_SCAN(scan_bool, uint8_t, AS_BOOL, uint32_t, uint32_t)
DEFINE_INT_SCAN(scan_i16, int16_t, AS_IT_IS, int32_t, int64_t)
DEFINE_INT_SCAN(scan_u16, uint16_t, AS_IT_IS, uint32_t, uint64_t)
DEFINE_INT_SCAN32(scan_i32, int32_t, I32_MAGNITUDE)
DEFINE_INT_SCAN32(scan_u32, uint32_t, AS_IT_IS)

/* True if every value fits 32 bits (as indices and sizes do); if false, `out` is undefined. */
static bool scan_i64(const void *elements, size_t n, fx_int_scan *out)
{
    const unsigned char *bytes = elements;
    uint64_t wide = 0, low = 0, high = 0;
    int64_t min = INT64_MAX, max = INT64_MIN, sum = 0;
    uint64_t n_zero = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t value;
        memcpy(&value, bytes + 8 * i, sizeof value);
        uint32_t magnitude = (uint32_t)(value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
        uint64_t square = (uint64_t)magnitude * magnitude;
        wide |= (uint64_t)(value ^ (value >> 63));
        min = value < min ? value : min;
        max = value > max ? value : max;
        n_zero += value == 0;
        sum = (int64_t)((uint64_t)sum + (uint64_t)value); /* valid only if all are narrow */
        low += square & UINT32_MAX;
        high += square >> 32;
    }
    *out = (fx_int_scan){.min = min, .max = max, .n_zero = n_zero, .sum = sum, .square_low = low, .square_high = high};
    return wide <= INT32_MAX;
}
