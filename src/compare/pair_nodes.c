/*
 * pair_nodes.c - which node of one graph is compared with which of the other.
 *
 * One pass after the other, each over what is still alone, each by a key; what has equal keys pairs in order of execution.
 * First the given map, then position in graphs of equal structure. Names alone prove little between graphs of different
 * structure: another decomposition has other operators on a line, and numbers their names in another way. So where shapes
 * and source lines are known a node's key is operator, line, module and shape, and it counts where both sides have it
 * equally often; where they have not, recorded statistics must confirm a pair. The last operator of a line yields what the
 * line computes, however it is decomposed: the last that computes, for autograd puts a detach behind what it saves. Without
 * such knowledge (dumps without an index) names have to do.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compare/pair_nodes.h"
#include "util/memory.h"

#define CONFIRMED_WITHIN 0.02 /* of the magnitude: statistics of one tensor computed in two ways */

typedef struct keyed {
    const char *key;
    size_t node;
} keyed;

static const char *code_of(const fx_node_entry *node)
{
    return node->info == NULL ? "" : node->info->source_code;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* ---- keys: NULL means that memory has run out, this one that the node takes no part in the pass ---- */

static const char no_key[] = "";

static const char *key_by_position(fx_arena *arena, const fx_node_list *list, size_t i, bool is_golden)
{
    (void)is_golden;
    const fxtap_node_info *info = list->items[i].info;
    return info == NULL ? no_key : fx_arena_printf(arena, "%zu\x1f%s", info->order, info->target);
}

static const char *join_texts(fx_arena *arena, const char *first, const char *second, const char *third)
{
    size_t n_first = strlen(first), n_second = strlen(second), n_third = strlen(third);
    char *key = fx_arena_alloc(arena, n_first + n_second + n_third + 3);
    if (key != NULL) {
        memcpy(key, first, n_first);
        key[n_first] = '\x1f';
        memcpy(key + n_first + 1, second, n_second);
        key[n_first + 1 + n_second] = '\x1f';
        memcpy(key + n_first + 1 + n_second + 1, third, n_third + 1);
    }
    return key;
}

static const char *key_by_name_and_code(fx_arena *arena, const fx_node_list *list, size_t i, bool is_golden)
{
    (void)is_golden;
    const fx_node_entry *node = &list->items[i];
    return join_texts(arena, node->name, node->target, code_of(node));
}

static const char *key_by_name(fx_arena *arena, const fx_node_list *list, size_t i, bool is_golden)
{
    (void)is_golden;
    return join_texts(arena, list->items[i].name, list->items[i].target, "");
}

static const char *shape_of(fx_arena *arena, const fx_node_entry *node)
{
    fxtap_buffer text;
    fxtap_buffer_init(&text);
    fxtap_buffer_printf(&text, "%zu of", node->n_alike);
    for (int32_t i = 0; node->output != NULL && i < node->output->ndim; i++) {
        fxtap_buffer_printf(&text, ",%lld", (long long)node->output->shape[i]);
    }
    const char *copy = fxtap_buffer_status(&text) == FXTAP_OK ? fx_arena_strdup(arena, text.bytes) : NULL;
    fxtap_buffer_clear(&text);
    return copy;
}

/* The line of code, the module that it runs in, and the shape of the result. */
static const char *line_key(fx_arena *arena, const fx_node_entry *node)
{
    const char *shape = shape_of(arena, node);
    if (shape == NULL) {
        return NULL;
    }
    return fx_arena_printf(arena, "%s\x1f%s\x1f%s\x1f%s\x1f%s", base_name(node->info->source_file),
                           node->info->source_function, code_of(node), node->info->module_path, shape);
}

static const char *key_by_line(fx_arena *arena, const fx_node_list *list, size_t i, bool is_golden)
{
    (void)is_golden;
    const fx_node_entry *node = &list->items[i];
    return code_of(node)[0] == '\0' || node->output == NULL ? no_key : line_key(arena, node);
}

static const char *key_by_line_and_target(fx_arena *arena, const fx_node_list *list, size_t i, bool is_golden)
{
    const char *line = key_by_line(arena, list, i, is_golden);
    return line == NULL || line == no_key ? line : fx_arena_printf(arena, "%s\x1f%s", list->items[i].target, line);
}

static bool same_line(const fx_node_entry *a, const fx_node_entry *b)
{
    return strcmp(code_of(a), code_of(b)) == 0 && strcmp(a->info->module_path, b->info->module_path) == 0;
}

static bool is_operator(const fx_node_entry *node, const char *const *names, size_t n_names)
{
    for (size_t i = 0; i < n_names; i++) {
        size_t length = strlen(names[i]);
        bool is_one = strncmp(node->target, names[i], length) == 0;
        if (is_one && (node->target[length] == '\0' || node->target[length] == '.')) { /* of any overload */
            return true;
        }
    }
    return false;
}

/* An operator whose result is its input, as it is. */
static bool passes_on(const fx_node_entry *node)
{
    static const char *const always[] = {"aten.detach",      "aten.alias",      "aten.clone",      "aten.contiguous",
                                         "aten.detach_copy", "aten.alias_copy", "aten.lift_fresh", "aten.lift_fresh_copy",
                                         "operator.getitem"};
    static const char *const to_the_same_shape[] = {
        "aten.view",   "aten.reshape", "aten.expand",      "aten.squeeze",     "aten.slice",
        "aten._unsafe_view", "aten.view_copy", "aten.expand_copy", "aten.squeeze_copy", "aten.slice_copy"};
    if (is_operator(node, always, sizeof always / sizeof always[0])) {
        return true;
    }
    const fxtap_tensor_info *from = node->input, *to = node->output;
    return from != NULL && to != NULL && from->dtype == to->dtype && from->ndim == to->ndim &&
           (to->ndim == 0 || memcmp(from->shape, to->shape, (size_t)to->ndim * sizeof *to->shape) == 0) &&
           is_operator(node, to_the_same_shape, sizeof to_the_same_shape / sizeof to_the_same_shape[0]);
}

/* Whether nodes `i` and `i + 1` stand on one line. */
static bool goes_on(const fx_node_list *list, size_t i)
{
    return i + 1 < list->n_items && list->items[i].info != NULL && list->items[i + 1].info != NULL &&
           same_line(&list->items[i], &list->items[i + 1]);
}

/* The last operator of a line that computes anything. */
static const char *key_by_line_end(fx_arena *arena, const fx_node_list *list, size_t i, bool is_golden)
{
    if (passes_on(&list->items[i])) {
        return no_key;
    }
    size_t last = i;
    while (goes_on(list, last) && passes_on(&list->items[last + 1])) {
        last++;
    }
    return goes_on(list, last) ? no_key : key_by_line(arena, list, i, is_golden);
}

/* The same, or the last one of a line that computes nothing: a dropout that is a clone in inference. */
static const char *key_by_any_line_end(fx_arena *arena, const fx_node_list *list, size_t i, bool is_golden)
{
    if (!passes_on(&list->items[i])) {
        return key_by_line_end(arena, list, i, is_golden);
    }
    size_t first = i;
    while (first > 0 && goes_on(list, first - 1) && passes_on(&list->items[first - 1])) {
        first--;
    }
    bool computes = first > 0 && goes_on(list, first - 1);
    return computes || goes_on(list, i) ? no_key : key_by_line(arena, list, i, is_golden);
}

/* Where the code was edited: names, for lines that the other side has not. */
static const char *key_by_name_and_shape(fx_arena *arena, const fx_node_list *list, size_t i, bool is_golden)
{
    const fx_node_entry *node = &list->items[i];
    if (node->is_line_known) {
        return no_key;
    }
    const char *shape = shape_of(arena, node), *name = key_by_name(arena, list, i, is_golden);
    return shape == NULL || name == NULL ? NULL : fx_arena_printf(arena, "%s\x1f%s", name, shape);
}

static const char *key_by_neighbours(fx_arena *arena, const fx_node_list *list, size_t i, bool is_golden)
{
    const fx_node_entry *node = &list->items[i];
    if (node->info == NULL || node->is_line_known || passes_on(node)) {
        return no_key; /* plain files pair by their paths alone; what only passes a value on may pass on any */
    }
    size_t anchor = 0; /* the golden index, plus one, of the nearest paired node before this one */
    for (size_t before = i; before > 0 && anchor == 0; before--) {
        const fx_node_entry *other = &list->items[before - 1];
        if (other->partner != FX_MISSING) {
            anchor = is_golden ? before : other->partner + 1;
        }
    }
    const char *shape = shape_of(arena, node);
    return shape == NULL ? NULL : fx_arena_printf(arena, "%zu\x1f%s\x1f%s", anchor, node->target, shape);
}

typedef const char *(*key_function)(fx_arena *arena, const fx_node_list *list, size_t i, bool is_golden);

/* ---- one pass ---- */

static int compare_keyed(const void *left, const void *right)
{
    const keyed *a = left, *b = right;
    int order = strcmp(a->key, b->key);
    return order != 0 ? order : (a->node > b->node) - (a->node < b->node);
}

static fxtap_status list_keys(fx_arena *arena, const fx_node_list *list, key_function key_of, bool is_golden,
                              keyed **out, size_t *n_out)
{
    keyed *keys = fx_arena_calloc(arena, list->n_items + 1, sizeof *keys);
    if (keys == NULL) {
        return FXTAP_E_NOMEM;
    }
    size_t n = 0;
    for (size_t i = 0; i < list->n_items; i++) {
        if (list->items[i].partner == FX_MISSING) {
            const char *key = key_of(arena, list, i, is_golden);
            if (key == NULL) {
                return FXTAP_E_NOMEM;
            }
            if (key != no_key) {
                keys[n++] = (keyed){key, i};
            }
        }
    }
    qsort(keys, n, sizeof *keys, compare_keyed);
    *out = keys;
    *n_out = n;
    return FXTAP_OK;
}

void fx_join_nodes(fx_node_list *golden, size_t g, fx_node_list *target, size_t t, fxtap_pairing pairing,
                   double confidence)
{
    golden->items[g].partner = t;
    target->items[t].partner = g;
    golden->items[g].pairing = target->items[t].pairing = pairing;
    golden->items[g].confidence = target->items[t].confidence = confidence;
}

/* Nodes of one key on either side, in order of execution. */
typedef struct run {
    const keyed *items;
    size_t n;
} run;

typedef void (*join_function)(fx_node_list *golden, run left, fx_node_list *target, run right, fxtap_pairing pairing,
                              double confidence);

typedef struct fx_pass {
    key_function key_of;
    join_function join;
    fxtap_pairing pairing;
    double confidence;
} fx_pass;

static void join_in_order(fx_node_list *golden, run left, fx_node_list *target, run right, fxtap_pairing pairing,
                          double confidence)
{
    for (size_t i = 0; i < left.n && i < right.n; i++) {
        fx_join_nodes(golden, left.items[i].node, target, right.items[i].node, pairing, confidence);
    }
}

static void join_equally_many(fx_node_list *golden, run left, fx_node_list *target, run right, fxtap_pairing pairing,
                              double confidence)
{
    for (size_t i = 0; i < left.n && left.n == right.n; i++) {
        size_t g = left.items[i].node, t = right.items[i].node;
        bool is_same_name = strcmp(golden->items[g].name, target->items[t].name) == 0;
        fx_join_nodes(golden, g, target, t, is_same_name ? FXTAP_PAIR_EXACT : pairing, is_same_name ? 1.0 : confidence);
    }
}

static bool is_near(double a, double b, double scale)
{
    return a == b || fabs(a - b) <= CONFIRMED_WITHIN * scale;
}

/* Whether the recorded statistics speak for two results being the same. */
static bool values_confirm(const fx_node_entry *golden, const fx_node_entry *target)
{
    const fxtap_tensor_info *g = golden->output, *t = target->output;
    if (g->has_hash && t->has_hash && g->hash.high == t->hash.high && g->hash.low == t->hash.low) {
        return true;
    }
    if (!g->has_stats || !t->has_stats || g->stats.count != t->stats.count) {
        return false;
    }
    double scale = fmax(g->stats.rms, t->stats.rms), largest = fmax(g->stats.abs_max, t->stats.abs_max);
    return is_near(g->stats.rms, t->stats.rms, scale) && is_near(g->stats.mean, t->stats.mean, scale) &&
           is_near(g->stats.min, t->stats.min, largest) && is_near(g->stats.max, t->stats.max, largest);
}

static void join_confirmed(fx_node_list *golden, run left, fx_node_list *target, run right, fxtap_pairing pairing,
                           double confidence)
{
    size_t next = 0;
    for (size_t i = 0; i < left.n; i++) {
        size_t g = left.items[i].node, at = next;
        while (at < right.n && !values_confirm(&golden->items[g], &target->items[right.items[at].node])) {
            at++;
        }
        if (at < right.n) {
            fx_join_nodes(golden, g, target, right.items[at].node, pairing, confidence);
            next = at + 1;
        }
    }
}

static size_t run_length(const keyed *keys, size_t n)
{
    size_t length = 1;
    while (length < n && strcmp(keys[length].key, keys[0].key) == 0) {
        length++;
    }
    return length;
}

static void join_runs(fx_node_list *golden, run left, fx_node_list *target, run right, const fx_pass *how)
{
    while (left.n > 0 && right.n > 0) {
        int order = strcmp(left.items[0].key, right.items[0].key);
        size_t n_left = order <= 0 ? run_length(left.items, left.n) : 0;
        size_t n_right = order >= 0 ? run_length(right.items, right.n) : 0;
        if (order == 0) {
            how->join(golden, (run){left.items, n_left}, target, (run){right.items, n_right}, how->pairing,
                      how->confidence);
        }
        left = (run){left.items + n_left, left.n - n_left};
        right = (run){right.items + n_right, right.n - n_right};
    }
}

static fxtap_status run_pass(fx_node_list *golden, fx_node_list *target, const fx_pass *how)
{
    fx_arena arena;
    fx_arena_init(&arena);
    keyed *left, *right;
    size_t n_left, n_right;
    fxtap_status status = list_keys(&arena, golden, how->key_of, true, &left, &n_left);
    if (status == FXTAP_OK) {
        status = list_keys(&arena, target, how->key_of, false, &right, &n_right);
    }
    if (status == FXTAP_OK) {
        join_runs(golden, (run){left, n_left}, target, (run){right, n_right}, how);
    }
    fx_arena_clear(&arena);
    return status;
}

static fxtap_status run_passes(fx_node_list *golden, fx_node_list *target, const fx_pass *passes, size_t n)
{
    fxtap_status status = FXTAP_OK;
    for (size_t i = 0; i < n && status == FXTAP_OK; i++) {
        status = run_pass(golden, target, &passes[i]);
    }
    return status;
}

static const char *key_by_bare_name(fx_arena *arena, const fx_node_list *list, size_t i, bool is_golden)
{
    (void)arena;
    (void)is_golden;
    return list->items[i].name;
}

/* The first key that is not below `name`. */
static size_t first_not_below(const keyed *keys, size_t n, const char *name)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(keys[middle].key, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static fxtap_status map_pass(const fx_map *map, fx_node_list *golden, fx_node_list *target)
{
    if (map == NULL) {
        return FXTAP_OK;
    }
    fx_arena arena;
    fx_arena_init(&arena);
    keyed *names;
    size_t n_names;
    fxtap_status status = list_keys(&arena, target, key_by_bare_name, false, &names, &n_names);
    char wanted[4096];
    for (size_t g = 0; g < golden->n_items && status == FXTAP_OK; g++) {
        if (!fx_map_apply(map, golden->items[g].name, wanted, sizeof wanted)) {
            continue;
        }
        size_t t = first_not_below(names, n_names, wanted);
        while (t < n_names && strcmp(names[t].key, wanted) == 0 && target->items[names[t].node].partner != FX_MISSING) {
            t++;
        }
        if (t < n_names && strcmp(names[t].key, wanted) == 0) {
            fx_join_nodes(golden, g, target, names[t].node, FXTAP_PAIR_MAPPED, 1.0);
        }
    }
    fx_arena_clear(&arena);
    return status;
}

/* Most nodes have a line of code and a result whose shape is known. */
static bool is_described(const fx_node_list *list)
{
    size_t n = 0;
    for (size_t i = 0; i < list->n_items; i++) {
        n += code_of(&list->items[i])[0] != '\0' && list->items[i].output != NULL;
    }
    return n > 0 && n >= list->n_items / 2;
}

static const char *key_by_code_alone(fx_arena *arena, const fx_node_list *list, size_t i, bool is_golden)
{
    (void)arena;
    (void)is_golden;
    return code_of(&list->items[i])[0] == '\0' ? no_key : code_of(&list->items[i]);
}

static fxtap_status mark_known_lines(fx_node_list *golden, fx_node_list *target)
{
    fx_arena arena;
    fx_arena_init(&arena);
    keyed *left, *right;
    size_t n_left, n_right;
    fxtap_status status = list_keys(&arena, golden, key_by_code_alone, true, &left, &n_left);
    if (status == FXTAP_OK) {
        status = list_keys(&arena, target, key_by_code_alone, false, &right, &n_right);
    }
    for (size_t g = 0, t = 0; status == FXTAP_OK && g < n_left && t < n_right;) {
        int order = strcmp(left[g].key, right[t].key);
        if (order == 0) {
            golden->items[left[g].node].is_line_known = true;
            size_t length = run_length(right + t, n_right - t);
            for (size_t i = t; i < t + length; i++) {
                target->items[right[i].node].is_line_known = true;
            }
        }
        g += order <= 0;
        t += order > 0;
    }
    fx_arena_clear(&arena);
    return status;
}

fxtap_status fx_match_nodes(const fx_map *map, bool same_structure, fx_node_list *golden, fx_node_list *target)
{
    static const fx_pass by_position = {key_by_position, join_in_order, FXTAP_PAIR_EXACT, 1.0};
    static const fx_pass described[] = {
        {key_by_line_and_target, join_equally_many, FXTAP_PAIR_SOURCE, 0.9},
        {key_by_line_and_target, join_confirmed, FXTAP_PAIR_SOURCE, 0.8},
        {key_by_line_end, join_equally_many, FXTAP_PAIR_SOURCE, 0.7},
        {key_by_any_line_end, join_equally_many, FXTAP_PAIR_SOURCE, 0.7},
        {key_by_line, join_confirmed, FXTAP_PAIR_SOURCE, 0.7},
        {key_by_name_and_shape, join_in_order, FXTAP_PAIR_EXACT, 0.8},
        {key_by_neighbours, join_in_order, FXTAP_PAIR_ORDER, 0.5},
    };
    static const fx_pass named[] = {
        {key_by_name_and_code, join_in_order, FXTAP_PAIR_EXACT, 1.0},
        {key_by_name, join_in_order, FXTAP_PAIR_EXACT, 0.9},
        {key_by_neighbours, join_in_order, FXTAP_PAIR_ORDER, 0.5},
    };
    fxtap_status status = map_pass(map, golden, target);
    if (status == FXTAP_OK && same_structure) {
        status = run_pass(golden, target, &by_position);
    }
    if (status != FXTAP_OK) {
        return status;
    }
    if (!is_described(golden) || !is_described(target)) {
        return run_passes(golden, target, named, sizeof named / sizeof named[0]);
    }
    status = mark_known_lines(golden, target);
    return status != FXTAP_OK ? status : run_passes(golden, target, described, sizeof described / sizeof described[0]);
}
