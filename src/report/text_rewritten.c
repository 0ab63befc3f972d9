/* text_rewritten.c - differences because the two programs are written differently, for a terminal. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "report/page_text.h"

#define SHOWN 3
#define MOST_REGIONS 64
#define MOST_LITERALS 64

/* A region, one or several operators on each side: how often it occurs, and how the results compare. */
typedef struct region {
    const fxtap_pair *first;
    uint64_t n, n_bad;
} region;

/* The operator of the side with fewer operators, which the other side replaces. */
static void find_operator(const fxtap_pair *pair, char *out, size_t n_bytes)
{
    bool is_target = pair->n_target_operators < pair->n_golden_operators && pair->target_name != NULL;
    const char *from = is_target ? strchr(pair->target_name, '-') : NULL,
               *end = from == NULL ? NULL : strstr(from, ".OUTPUT");
    if (end != NULL) {
        snprintf(out, n_bytes, "%.*s", (int)(end - from - 1), from + 1);
    } else {
        snprintf(out, n_bytes, "%s", pair->operator_name);
    }
}

static bool is_same_kind(const fxtap_pair *a, const fxtap_pair *b)
{
    char left[128], right[128];
    find_operator(a, left, sizeof left);
    find_operator(b, right, sizeof right);
    return strcmp(left, right) == 0 && a->n_golden_operators == b->n_golden_operators &&
           a->n_target_operators == b->n_target_operators;
}

static size_t list_regions(const fxtap_report *report, region out[MOST_REGIONS])
{
    size_t n = 0;
    for (size_t i = 0; i < report->n_pairs; i++) {
        const fxtap_pair *pair = &report->pairs[i];
        if (pair->pairing != FXTAP_PAIR_REGION || pair->io != FXTAP_OUTPUT || strcmp(pair->position, "0") != 0) {
            continue;
        }
        size_t at = 0;
        while (at < n && !is_same_kind(out[at].first, pair)) {
            at++;
        }
        if (at == MOST_REGIONS) {
            continue;
        }
        if (at == n) {
            out[n++] = (region){.first = pair};
        }
        out[at].n++;
        out[at].n_bad += fx_verdict_is_bad(pair->verdict);
    }
    return n;
}

/* The operator without "aten." and ".default": "add.Tensor". */
static void operator_name(const fx_page *p, const char *target)
{
    char name[128];
    const char *from = strncmp(target, "aten.", 5) == 0 ? target + 5 : target;
    size_t length = strcspn(from, "\n");
    size_t end = length > 8 && memcmp(from + length - 8, ".default", 8) == 0 ? length - 8 : length;
    end = end < sizeof name ? end : sizeof name - 1;
    memcpy(name, from, end);
    name[end] = '\0';
    fx_page_text(p, name, 24, false);
}

/* "native_layer_norm: 1 operator against 9, 12 times; results agree" */
static void region_line(const fx_page *p, const region *r)
{
    const fxtap_pair *pair = r->first;
    fx_page_label(p, "");
    char operator[128];
    find_operator(pair, operator, sizeof operator);
    operator_name(p, operator);
    fxtap_buffer_printf(p->out, ": %" PRIu32 " operator%s against %" PRIu32, pair->n_golden_operators,
                        pair->n_golden_operators == 1 ? "" : "s", pair->n_target_operators);
    if (r->n > 1) {
        fxtap_buffer_text(p->out, ", ");
        fx_page_count(p, r->n);
        fxtap_buffer_text(p->out, " times");
    }
    fxtap_buffer_text(p->out, "; ");
    if (r->n_bad == 0) {
        fxtap_buffer_text(p->out, "results agree");
    } else {
        fx_page_counted(p, r->n_bad, "result differs", "results differ");
    }
    fxtap_buffer_text(p->out, "\n");
}

/* "45 tensors only in target, of var_mean, add_13, rsqrt_4, ..." */
static void alone_line(const fx_page *p, fxtap_verdict verdict)
{
    uint64_t n = 0;
    fxtap_buffer names;
    fxtap_buffer_init(&names);
    const char *before = "";
    size_t n_shown = 0;
    const fxtap_pair *only = NULL;
    for (size_t i = 0; i < p->report->n_pairs; i++) {
        const fxtap_pair *pair = &p->report->pairs[i];
        if (pair->verdict != verdict || pair->is_missing) {
            continue;
        }
        n++;
        if (strcmp(pair->node, before) != 0 && n_shown++ < SHOWN) {
            fxtap_buffer_printf(&names, "%s%s", names.length > 0 ? ", " : "", pair->node);
        }
        before = pair->node;
        only = pair;
    }
    if (n == 1) {
        fx_page_label(p, "");
        fx_page_text(p, only->name, p->width - 28, false);
        fxtap_buffer_printf(p->out, ", %s\n", fxtap_verdict_name(verdict));
    } else if (n > 0) {
        fx_page_label(p, "");
        fx_page_counted(p, n, "tensor", "tensors");
        fxtap_buffer_printf(p->out, " %s, of ", fxtap_verdict_name(verdict));
        fx_page_text(p, fx_page_scratch_text(p, &names), p->width - 50, false);
        fxtap_buffer_text(p->out, n_shown > SHOWN ? ", ...\n" : "\n");
    }
    fxtap_buffer_clear(&names);
}

/* With `strict` a literal that differs is a difference; if there are origins, they do not list it. */
static bool is_other_literal(const fxtap_report *report, const fxtap_pair *pair)
{
    return pair->verdict == FXTAP_REWRITTEN ||
           (pair->is_literal && pair->verdict == FXTAP_DIFFERENT && report->n_origins > 0);
}

static bool is_same_literal(const fxtap_pair *a, const fxtap_pair *b)
{
    return strcmp(a->node, b->node) == 0 && strcmp(a->position, b->position) == 0 && strcmp(a->detail, b->detail) == 0;
}

/* "native_layer_norm_2 eps: golden 1e-05, target 0.001, in 3 calls" */
static void literal_line(const fx_page *p, const fxtap_pair *pair, uint64_t n)
{
    fxtap_buffer line;
    fxtap_buffer_init(&line);
    bool has_detail = pair->detail[0] != '\0';
    fxtap_buffer_printf(&line, "%s%s%s", has_detail ? pair->node : pair->name, has_detail ? " " : "", pair->detail);
    if (n > 1) {
        fxtap_buffer_printf(&line, ", in %" PRIu64 " calls", n);
    }
    fx_page_label(p, "");
    fx_page_wrapped(p, fx_page_scratch_text(p, &line), 10);
    fxtap_buffer_text(p->out, "\n");
    fxtap_buffer_clear(&line);
}

typedef struct literal { /* the same literal in one or more calls */
    const fxtap_pair *first;
    uint64_t n;
} literal;

static void literals(const fx_page *p)
{
    literal found[MOST_LITERALS];
    size_t n = 0;
    uint64_t n_more = 0;
    for (size_t i = 0; i < p->report->n_pairs; i++) {
        const fxtap_pair *pair = &p->report->pairs[i];
        if (!is_other_literal(p->report, pair)) {
            continue;
        }
        size_t at = 0;
        while (at < n && !is_same_literal(found[at].first, pair)) {
            at++;
        }
        if (at == MOST_LITERALS) {
            n_more++;
            continue;
        }
        if (at == n) {
            found[n++] = (literal){.first = pair};
        }
        found[at].n++;
        n_more += at >= SHOWN;
    }
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        literal_line(p, found[i].first, found[i].n);
    }
    if (n_more > 0) {
        fx_page_label(p, "");
        fxtap_buffer_text(p->out, "and ");
        fx_page_counted(p, n_more, "more number in the code\n", "more numbers in the code\n");
    }
}

static bool any_literal(const fxtap_report *report)
{
    for (size_t i = 0; i < report->n_pairs; i++) {
        if (is_other_literal(report, &report->pairs[i])) {
            return true;
        }
    }
    return false;
}

void fx_page_rewritten(const fx_page *p)
{
    region regions[MOST_REGIONS];
    size_t n = list_regions(p->report, regions);
    uint64_t n_alone = p->report->counts[FXTAP_ONLY_GOLDEN] + p->report->counts[FXTAP_ONLY_TARGET];
    if (n == 0 && !any_literal(p->report) && n_alone <= p->report->n_missing) {
        return;
    }
    fxtap_buffer_text(p->out, "\nWritten differently\n");
    for (size_t i = 0; i < n && i < 2 * SHOWN; i++) {
        region_line(p, &regions[i]);
    }
    if (n > 2 * SHOWN) {
        fx_page_label(p, "");
        fxtap_buffer_printf(p->out, "and %zu more kinds\n", n - 2 * SHOWN);
    }
    literals(p);
    alone_line(p, FXTAP_ONLY_GOLDEN);
    alone_line(p, FXTAP_ONLY_TARGET);
}
