#include "tensor/undefined.h"

#include <string.h>

#include "tensor/hash.h"
#include "tensor/stats.h"
#include "tensor/view.h"
#include "util/error.h"
#include "util/float_mode.h"
#include "util/memory.h"

#define BLOCK_BYTES ((size_t)64 * 1024)
#define LEB128_BYTES 10

bool fx_undefined_check(const fxtap_undefined_range *ranges, size_t n_ranges, uint64_t n_elems)
{
    uint64_t end = 0;
    for (size_t i = 0; i < n_ranges; i++) {
        const fxtap_undefined_range *range = &ranges[i];
        bool is_kind = range->kind >= FXTAP_UNDEFINED_MAYBE && range->kind <= FXTAP_UNDEFINED_UNWRITTEN;
        if (!is_kind || range->count == 0 || range->first < end || range->first > n_elems ||
            range->count > n_elems - range->first) {
            return false;
        }
        end = range->first + range->count;
    }
    return true;
}

uint64_t fx_undefined_count(const fxtap_undefined_range *ranges, size_t n_ranges)
{
    uint64_t count = 0;
    for (size_t i = 0; i < n_ranges; i++) {
        count += ranges[i].count;
    }
    return count;
}

/* ---- as bytes ---- */

static void put_number(fxtap_buffer *out, uint64_t value)
{
    unsigned char bytes[LEB128_BYTES];
    size_t n = 0;
    do {
        bytes[n] = (unsigned char)(value & 0x7f);
        value >>= 7;
        bytes[n] |= value > 0 ? 0x80 : 0;
        n++;
    } while (value > 0);
    fxtap_buffer_append(out, bytes, n);
}

void fx_undefined_encode(const fxtap_undefined_range *ranges, size_t n_ranges, fxtap_buffer *out)
{
    uint64_t end = 0;
    for (size_t i = 0; i < n_ranges; i++) {
        put_number(out, ranges[i].first - end);
        put_number(out, ranges[i].count);
        put_number(out, (uint64_t)ranges[i].kind);
        end = ranges[i].first + ranges[i].count;
    }
}

typedef struct cursor {
    const unsigned char *at;
    const unsigned char *end;
    bool is_bad;
} cursor;

static uint64_t take_number(cursor *c)
{
    uint64_t value = 0;
    for (unsigned shift = 0; c->at < c->end && shift < 7 * LEB128_BYTES; shift += 7) {
        unsigned char byte = *c->at++;
        if (shift == 63 && byte > 1) {
            break;
        }
        value |= (uint64_t)(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) {
            return value;
        }
    }
    c->is_bad = true;
    return 0;
}

fxtap_status fx_undefined_decode(const void *bytes, size_t n_bytes, uint64_t n_elems, fx_arena *arena,
                                 const fxtap_undefined_range **out, size_t *n_out)
{
    cursor c = {.at = bytes, .end = bytes == NULL ? NULL : (const unsigned char *)bytes + n_bytes};
    fxtap_undefined_range *ranges = fx_arena_calloc(arena, n_bytes / 3 + 1, sizeof *ranges);
    if (ranges == NULL) {
        return FXTAP_E_NOMEM;
    }
    size_t n = 0;
    uint64_t end = 0;
    while (c.at < c.end && !c.is_bad) {
        uint64_t gap = take_number(&c), count = take_number(&c), kind = take_number(&c);
        if (c.is_bad || kind > FXTAP_UNDEFINED_UNWRITTEN || gap > n_elems - end || count > n_elems - end - gap) {
            c.is_bad = true;
            break;
        }
        ranges[n++] = (fxtap_undefined_range){.first = end + gap, .count = count, .kind = (fxtap_undefined)kind};
        end += gap + count;
    }
    if (c.is_bad || !fx_undefined_check(ranges, n, n_elems)) {
        return fx_error(FXTAP_E_FORMAT, "invalid ranges of undefined elements");
    }
    *out = ranges;
    *n_out = n;
    return FXTAP_OK;
}

/* ---- statistics ---- */

/* The remaining ranges. */
typedef struct passing {
    const fxtap_undefined_range *ranges;
    size_t n_ranges;
} passing;

/* Compacts the defined ones of `n` elements, the first of which has index `first`; returns their number. */
static size_t keep_defined(passing *p, unsigned char *elements, size_t elem_bytes, uint64_t first, size_t n)
{
    size_t n_kept = 0, at = 0;
    while (at < n) {
        while (p->n_ranges > 0 && p->ranges->first + p->ranges->count <= first + at) {
            p->ranges++;
            p->n_ranges--;
        }
        uint64_t next = p->n_ranges > 0 && p->ranges->first > first + at ? p->ranges->first - first : n;
        bool is_inside = p->n_ranges > 0 && p->ranges->first <= first + at;
        uint64_t end = is_inside ? p->ranges->first + p->ranges->count - first : next;
        size_t stop = end < n ? (size_t)end : n;
        if (!is_inside) {
            memmove(elements + n_kept * elem_bytes, elements + at * elem_bytes, (stop - at) * elem_bytes);
            n_kept += stop - at;
        }
        at = stop;
    }
    return n_kept;
}

static fxtap_status run_blocks(const fxtap_view *view, passing *p, unsigned char *block, fx_stats_state *state,
                               fx_hasher *all, fx_hasher *defined)
{
    size_t elem_bytes = fxtap_dtype_size(fxtap_dtype_saved(view->dtype));
    uint64_t n_saved = fx_view_saved_count(view), at_once = BLOCK_BYTES / elem_bytes;
    for (uint64_t done = 0; done < n_saved; done += at_once) {
        size_t n = (size_t)(n_saved - done < at_once ? n_saved - done : at_once);
        fxtap_status status = fxtap_view_gather(view, done, n, block);
        if (status != FXTAP_OK) {
            return status;
        }
        fx_hasher_update(all, block, n * elem_bytes);
        size_t n_kept = keep_defined(p, block, elem_bytes, done, n);
        fx_stats_update(state, block, n_kept);
        fx_hasher_update(defined, block, n_kept * elem_bytes);
    }
    return FXTAP_OK;
}

fxtap_status fx_undefined_stats(const fxtap_view *view, const fxtap_undefined_range *ranges, size_t n_ranges,
                                fxtap_stats *out, fxtap_hash128 *hash_out, fxtap_hash128 *defined_hash_out)
{
    fx_stats_state state;
    fx_hasher all, defined;
    fxtap_status status = fxtap_view_check(view);
    if (status != FXTAP_OK) {
        return status;
    }
    if (!fx_stats_defined(view->dtype)) {
        return fx_error(FXTAP_E_UNSUPPORTED, "no statistics for elements of type %s", fxtap_dtype_name(view->dtype));
    }
    unsigned char *block = fx_alloc(BLOCK_BYTES);
    if (block == NULL) {
        return FXTAP_E_NOMEM;
    }
    fx_float_mode callers = fx_float_mode_begin();
    passing p = {ranges, n_ranges};
    fx_stats_init(&state, view->dtype);
    fx_hasher_init(&all);
    fx_hasher_init(&defined);
    status = run_blocks(view, &p, block, &state, &all, &defined);
    if (status == FXTAP_OK) {
        fx_stats_finish(&state, out);
        *hash_out = fx_hasher_finish(&all);
        *defined_hash_out = fx_hasher_finish(&defined);
    }
    fx_float_mode_end(callers);
    fx_free(block);
    return status;
}
