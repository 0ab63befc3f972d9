/*
 * undefined.c - which elements of a pair are judged if some are undefined, and the findings of capture about the
 * operators of a side.
 *
 * An element that is uninitialised on either side, or was computed from one that is, has no value to compare. If both
 * sides do not know whether it was written, it is judged only if both have the same bits.
 */
#include <string.h>

#include "compare/batch.h"
#include "compare/undefined.h"
#include "tensor/view.h"
#include "util/error.h"
#include "util/memory.h"

#define CHUNK 256

/* Bits of an element of a mask. */
#define LEFT_OUT 1u
#define MAYBE_GOLDEN 2u
#define MAYBE_TARGET 4u

bool fx_has_undefined(const fxtap_tensor_info *golden, const fxtap_tensor_info *target)
{
    return golden->n_undefined > 0 || target->n_undefined > 0;
}

bool fx_same_undefined(const fxtap_tensor_info *golden, const fxtap_tensor_info *target)
{
    if (golden->n_undefined != target->n_undefined || golden->fortran_order != target->fortran_order) {
        return false;
    }
    for (size_t i = 0; i < golden->n_undefined; i++) {
        const fxtap_undefined_range *g = &golden->undefined[i], *t = &target->undefined[i];
        if (g->first != t->first || g->count != t->count) {
            return false;
        }
    }
    return true;
}

static bool is_in_doubt(const fxtap_tensor_info *info)
{
    for (size_t i = 0; i < info->n_undefined; i++) {
        if (info->undefined[i].kind == FXTAP_UNDEFINED_MAYBE) {
            return true;
        }
    }
    return false;
}

bool fx_undefined_settles(const fxtap_tensor_info *golden, const fxtap_tensor_info *target, bool has_files)
{
    return golden->has_meta && target->has_meta && golden->n_undefined > 0 && golden->dtype == target->dtype &&
           golden->saved_dtype == target->saved_dtype && fx_same_undefined(golden, target) &&
           golden->defined_hash.high == target->defined_hash.high &&
           golden->defined_hash.low == target->defined_hash.low && !(has_files && is_in_doubt(golden));
}

/* ---- dumps without masks of undefined elements ---- */

fxtap_status fx_mark_undefined(fx_batch *batch, fx_group_nodes *group)
{
    const fx_wiring *wiring;
    fxtap_status status = fx_group_wiring(group, true, &wiring);
    if (status != FXTAP_OK || wiring == NULL) {
        return status;
    }
    for (size_t n = 0; n < group->n_nodes; n++) {
        const fx_node_pair *node = &group->nodes[n];
        for (size_t i = node->first_pair; i < node->first_pair + node->n_pairs && node->golden_node != FX_MISSING;
             i++) {
            fxtap_pair *pair = &batch->pairs[i];
            size_t producer = node->golden_node;
            bool is_known =
                pair->io != FXTAP_INPUT || fx_wiring_producer(wiring, node->golden_node, pair->position, &producer);
            if (pair->verdict == FXTAP_NOT_COMPARED && is_known && fx_wiring_is_undefined(wiring, producer)) {
                pair->verdict = FXTAP_UNDEFINED;
            }
        }
    }
    return FXTAP_OK;
}

/* ---- the mask ---- */

/* Iterates over the positions of a file's elements, in row-major order or in file order. */
typedef struct walk {
    const fxtap_view *view;
    bool by_rows; /* row-major order in a column-major file */
    int64_t index[FXTAP_MAX_DIMS];
    int64_t strides[FXTAP_MAX_DIMS];
    uint64_t position;
} walk;

static void begin_walk(walk *w, const fxtap_view *view, bool by_rows)
{
    *w = (walk){.view = view, .by_rows = by_rows && fxtap_view_order(view) == FXTAP_ORDER_FORTRAN};
    fx_contiguous_strides(view->ndim, view->shape, false, w->strides);
}

static void step(walk *w)
{
    if (!w->by_rows) {
        w->position++;
        return;
    }
    for (int32_t i = 0; i < w->view->ndim; i++) { /* the file's first axis varies fastest */
        w->position += (uint64_t)w->strides[i];
        if (++w->index[i] < w->view->shape[i]) {
            return;
        }
        w->position -= (uint64_t)(w->strides[i] * w->view->shape[i]);
        w->index[i] = 0;
    }
}

static void mark_side(const fxtap_tensor_info *info, const fxtap_view *view, bool by_rows, unsigned maybe,
                      uint8_t *mask)
{
    walk w;
    uint64_t at = 0;
    begin_walk(&w, view, by_rows);
    for (size_t i = 0; i < info->n_undefined; i++) {
        const fxtap_undefined_range *range = &info->undefined[i];
        if (!w.by_rows) {
            at = w.position = range->first;
        }
        for (; at < range->first; at++) {
            step(&w);
        }
        for (; at < range->first + range->count; at++) {
            mask[w.position] |= (uint8_t)(range->kind == FXTAP_UNDEFINED_MAYBE ? maybe : LEFT_OUT);
            step(&w);
        }
    }
}

/* Whether both sides have the same bits in an element, in the order of the mask. */
static fxtap_status is_equal_at(const fxtap_view *golden, const fxtap_view *target, bool by_rows, uint64_t at,
                                bool *out)
{
    unsigned char bytes[2][16];
    const fxtap_view *views[] = {golden, target};
    *out = golden->dtype == target->dtype;
    for (int side = 0; side < 2 && *out; side++) {
        fxtap_status status = by_rows ? fx_view_gather_rows(views[side], at, 1, bytes[side])
                                      : fxtap_view_gather(views[side], at, 1, bytes[side]);
        if (status != FXTAP_OK) {
            return status;
        }
    }
    *out = *out && memcmp(bytes[0], bytes[1], fxtap_dtype_size(golden->dtype)) == 0;
    return FXTAP_OK;
}

static fxtap_status settle_maybe(fx_undefined_mask *mask, const fxtap_view *golden, const fxtap_view *target,
                                 bool by_rows)
{
    fxtap_status status = FXTAP_OK;
    for (uint64_t i = 0; i < mask->n_elems && status == FXTAP_OK; i++) {
        bool is_equal = true;
        if ((mask->bits[i] & LEFT_OUT) == 0 &&
            (mask->bits[i] & (MAYBE_GOLDEN | MAYBE_TARGET)) == (MAYBE_GOLDEN | MAYBE_TARGET)) {
            status = is_equal_at(golden, target, by_rows, i, &is_equal);
        }
        mask->bits[i] = (mask->bits[i] & LEFT_OUT) != 0 || !is_equal ? LEFT_OUT : 0;
        mask->n_left_out += mask->bits[i];
    }
    return status;
}

fxtap_status fx_undefined_mask_create(const fxtap_tensor_info *golden, const fxtap_tensor_info *target,
                                      const fxtap_view *golden_view, const fxtap_view *target_view,
                                      fx_undefined_mask *out)
{
    *out = (fx_undefined_mask){0};
    fxtap_status status = fxtap_view_count(golden_view, &out->n_elems);
    if (status != FXTAP_OK) {
        return status;
    }
    out->bits = fx_calloc((size_t)out->n_elems, 1);
    if (out->bits == NULL) {
        return FXTAP_E_NOMEM;
    }
    bool by_rows =
        fxtap_view_order(golden_view) != FXTAP_ORDER_FORTRAN || fxtap_view_order(target_view) != FXTAP_ORDER_FORTRAN;
    mark_side(golden, golden_view, by_rows, MAYBE_GOLDEN, out->bits);
    mark_side(target, target_view, by_rows, MAYBE_TARGET, out->bits);
    status = settle_maybe(out, golden_view, target_view, by_rows);
    if (status != FXTAP_OK) {
        fx_undefined_mask_clear(out);
    }
    return status;
}

void fx_undefined_mask_clear(fx_undefined_mask *mask)
{
    fx_free(mask->bits);
    *mask = (fx_undefined_mask){0};
}

bool fx_undefined_mask_next(const fx_undefined_mask *mask, uint64_t *first, uint64_t *count)
{
    uint64_t at = *first + *count;
    while (at < mask->n_elems && mask->bits[at] != 0) {
        at++;
    }
    *first = at;
    while (at < mask->n_elems && mask->bits[at] == 0) {
        at++;
    }
    *count = at - *first;
    return *count > 0;
}

/* ---- findings ---- */

static const char *line_of(fx_arena *arena, const fxtap_finding *finding, const char *which)
{
    char text[400];
    const fxtap_node_info *node = finding->node;
    const char *file = strrchr(node->source_file, '/');
    fxtap_finding_text(finding, text, sizeof text);
    if (node->source_file[0] == '\0') {
        return fx_arena_printf(arena, "%s: %s (%s) %s", which, node->name, node->target, text);
    }
    return fx_arena_printf(arena, "%s: %s (%s) at %s:%d %s", which, node->name, node->target,
                           file != NULL ? file + 1 : node->source_file, node->source_line, text);
}

static bool is_known(const fxtap_report *report, const char *line)
{
    for (size_t i = 0; i < report->n_warnings; i++) {
        if (strcmp(report->warnings[i], line) == 0) {
            return true;
        }
    }
    return false;
}

fxtap_status fx_warn_of_findings(fx_comparison *comparison, const fx_side *side, const char *which)
{
    fxtap_finding *findings = NULL;
    size_t n = 0;
    fxtap_status status = fxtap_reader_findings(side->reader, &side->query, &findings, &n);
    for (size_t i = 0; i < n && status == FXTAP_OK; i++) {
        const char *line = line_of(&comparison->arena, &findings[i], which);
        if (line == NULL) {
            status = FXTAP_E_NOMEM;
        } else if (!is_known(comparison->report, line)) { /* each step has the same findings */
            status = fx_report_warn(comparison->report, line);
        }
    }
    fx_free(findings);
    return status;
}
