/* traits.c - operator, module, line, value and readers of every node, from its index rows and the wiring. */
#include "pair/traits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/memory.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define MAX_COMPONENTS 64
#define CLOSELY 1e-3 /* relative difference allowed between statistics of the same quantity */
#define ROUGHLY 2e-2 /* the same for a quantity computed in two precisions */
#define MAX_ROOT 4   /* leading components of a module path that may differ between the sides */

/* ---- module paths ---- */

typedef struct path {
    uint64_t components[MAX_COMPONENTS]; /* hashes */
    size_t n;
} path;

static bool is_wrapper(const char *text, size_t length)
{
    static const char *const wrappers[] = {
        "_modules", "_orig_mod", "module", "_fsdp_wrapped_module", "_checkpoint_wrapped_module", "__self__", "_module"};
    for (size_t i = 0; i < sizeof wrappers / sizeof wrappers[0]; i++) {
        if (strlen(wrappers[i]) == length && memcmp(wrappers[i], text, length) == 0) {
            return true;
        }
    }
    return false;
}

/* "L['self']._modules['encoder'].layer.3.act": encoder, layer, 3, act. Skips the variable that holds the model. */
static void split_path(const char *text, path *out)
{
    bool has_root = text[0] == 'L' && text[1] == '[';
    out->n = 0;
    for (size_t n_seen = 0; *text != '\0' && out->n < MAX_COMPONENTS;) {
        size_t length = strcspn(text, ".[]'\"");
        bool is_root = has_root && n_seen < 2; /* L and self */
        if (length > 0 && !is_root && !is_wrapper(text, length)) {
            out->components[out->n++] = XXH3_64bits(text, length);
        }
        n_seen += length > 0;
        text += length;
        text += *text != '\0';
    }
}

static uint64_t hash_path(const path *modules, size_t n_root)
{
    if (modules->n <= n_root) {
        return 0;
    }
    return XXH3_64bits(modules->components + n_root, (modules->n - n_root) * sizeof modules->components[0]) | 1u;
}

static const char *module_path(const fx_exec_node *node)
{
    return node->info == NULL || node->info->module_path == NULL ? "" : node->info->module_path;
}

static int compare_hashes(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

/* The hashes of all module paths, sorted, without duplicates. NULL: no memory. */
static uint64_t *list_paths(fx_arena *arena, const fx_execution *execution, size_t n_root, size_t *n_out)
{
    uint64_t *hashes = fx_arena_calloc(arena, execution->n_nodes + 1, sizeof *hashes);
    const char *before = "";
    size_t n = 0, n_unique = 0;
    for (size_t i = 0; hashes != NULL && i < execution->n_nodes; i++) {
        const char *text = module_path(&execution->nodes[i]);
        if (text != before && strcmp(text, before) != 0) {
            path modules;
            split_path(text, &modules);
            uint64_t hash = hash_path(&modules, n_root);
            if (hash != 0) {
                hashes[n++] = hash;
            }
        }
        before = text;
    }
    if (n > 0) {
        qsort(hashes, n, sizeof *hashes, compare_hashes);
    }
    for (size_t i = 0; i < n; i++) {
        if (n_unique == 0 || hashes[i] != hashes[n_unique - 1]) {
            hashes[n_unique++] = hashes[i];
        }
    }
    *n_out = n_unique;
    return hashes;
}

static size_t count_common(const uint64_t *a, size_t n_a, const uint64_t *b, size_t n_b)
{
    size_t n = 0;
    for (size_t i = 0, k = 0; i < n_a && k < n_b;) {
        n += a[i] == b[k];
        uint64_t left = a[i], right = b[k];
        i += left <= right;
        k += right <= left;
    }
    return n;
}

/* Finds how many leading components to drop on each side so that most paths are common to both. */
static bool find_roots(fx_arena *arena, const fx_execution *golden, const fx_execution *target, size_t roots[2])
{
    uint64_t *paths[2][MAX_ROOT];
    size_t counts[2][MAX_ROOT], best = 0;
    roots[0] = roots[1] = 0;
    for (size_t r = 0; r < MAX_ROOT; r++) {
        paths[0][r] = list_paths(arena, golden, r, &counts[0][r]);
        paths[1][r] = list_paths(arena, target, r, &counts[1][r]);
        if (paths[0][r] == NULL || paths[1][r] == NULL) {
            return false;
        }
    }
    for (size_t r = 0; r < 2 * MAX_ROOT - 1; r++) { /* drop components on at most one side */
        size_t g = r < MAX_ROOT ? r : 0, t = r < MAX_ROOT ? 0 : r - MAX_ROOT + 1;
        size_t n = count_common(paths[0][g], counts[0][g], paths[1][t], counts[1][t]);
        if (n > best) {
            best = n;
            roots[0] = g;
            roots[1] = t;
        }
    }
    return true;
}

static void fill_modules(fx_traits *traits, size_t n_root)
{
    const char *before = "";
    uint64_t hash = 0;
    for (size_t i = 0; i < traits->execution->n_nodes; i++) {
        const char *text = module_path(&traits->execution->nodes[i]);
        if (text != before && strcmp(text, before) != 0) {
            path modules;
            split_path(text, &modules);
            hash = hash_path(&modules, n_root);
        }
        before = text;
        traits->items[i].module = text[0] == '\0' ? 0 : hash;
    }
}

/* ---- one node ---- */

static uint64_t line_of(const fxtap_node_info *info)
{
    if (info == NULL || info->source_code == NULL || info->source_code[0] == '\0') {
        return 0;
    }
    uint64_t seed = XXH3_64bits(info->source_function, strlen(info->source_function));
    return XXH3_64bits_withSeed(info->source_code, strlen(info->source_code), seed) | 1u;
}

/* Whether a tensor is a literal: small, and not produced by a node. */
static bool is_literal_place(const fx_execution *execution, size_t node, const fxtap_tensor_info *tensor)
{
    size_t producer;
    return tensor->io == FXTAP_INPUT && (!tensor->has_meta || tensor->ndim <= 1) &&
           !fx_wiring_producer(execution->wiring, node, tensor->position, &producer);
}

/* Equal numbers have equal statistics, whether they are integers or not. */
static uint64_t literals_of(const fx_execution *execution, size_t node)
{
    const fx_exec_node *at = &execution->nodes[node];
    uint64_t hash = 0;
    for (size_t i = at->first_tensor; execution->wiring != NULL && i < at->first_tensor + at->n_tensors; i++) {
        const fxtap_tensor_info *tensor = fx_exec_tensor(execution, i);
        if (is_literal_place(execution, node, tensor)) {
            const double values[] = {tensor->has_stats ? tensor->stats.mean : 0.0,
                                     tensor->has_stats ? tensor->stats.rms : 0.0};
            hash = XXH3_64bits_withSeed(values, sizeof values, hash + 1);
        }
    }
    return hash;
}

/* The node whose value this one passes on unchanged, or the node itself if it computes. */
static size_t source_of(const fx_traits *traits, size_t node)
{
    const fx_execution *execution = traits->execution;
    size_t n_inputs;
    const size_t *inputs = fx_wiring_inputs(execution->wiring, node, &n_inputs);
    if (n_inputs == 0) {
        return node;
    }
    const char *target = execution->nodes[node].operator_name;
    const fxtap_tensor_info *from = traits->items[inputs[0]].value, *to = traits->items[node].value;
    bool is_link = fx_wiring_position(execution->wiring, node, 0)[0] == '\0';
    bool is_kept = from != NULL && to != NULL && from->dtype == to->dtype && fx_same_shape(from, to);
    bool passes = is_link || (target != NULL && fx_passes_on(target) && (is_kept || from == NULL || to == NULL)) ||
                  (target != NULL && is_kept && fx_keeps_values(target));
    return passes ? traits->items[inputs[0]].source : node;
}

static fxtap_node_op op_of(const fx_execution *execution, size_t node)
{
    const fx_exec_call *call = &execution->calls[execution->nodes[node].call];
    fxtap_node_desc desc = {.struct_size = sizeof desc};
    bool is_known = call->record != NULL &&
                    fxtap_graph_node(call->record, (fxtap_node)(node - call->first_node), &desc) == FXTAP_OK;
    return is_known ? desc.op : FXTAP_OP_CALL_FUNCTION;
}

static void fill_node(fx_traits *traits, size_t i)
{
    const fx_execution *execution = traits->execution;
    const fx_exec_node *node = &execution->nodes[i];
    fx_trait *trait = &traits->items[i];
    *trait = (fx_trait){.source = i, .value = fx_execution_value(execution, i)};
    if (node->operator_name == NULL) {
        return; /* a number without a node */
    }
    if (node->operator_name[0] == '\0' && node->n_tensors > 0) {
        return; /* a plain file has only its name */
    }
    fxtap_node_op op = op_of(execution, i);
    trait->is_input = op == FXTAP_OP_PLACEHOLDER || op == FXTAP_OP_GET_ATTR;
    bool is_link =
        op == FXTAP_OP_PLACEHOLDER && execution->wiring != NULL && !fx_wiring_is_placeholder(execution->wiring, i);
    trait->is_output = op == FXTAP_OP_OUTPUT;
    if (!is_link) {
        const char *target = trait->is_input ? "placeholder" : node->operator_name;
        trait->base = fx_operator_base(target);
        trait->family = trait->is_input ? trait->base : fx_operator_family(target);
        size_t producer, index;
        if (fx_execution_item(execution, i, &producer,
                              &index)) { /* one of several results: uses the producer's operator */
            trait->base = (traits->items[producer].base + index * 2) | 1u;
            trait->family = (traits->items[producer].family + index * 2) | 1u;
        }
        trait->is_commutative = fx_is_commutative(target);
        trait->is_permuting = fx_is_permuting(target);
        trait->is_part = fx_is_part(target);
    }
    trait->line = trait->is_input ? 0 : line_of(node->info);
    trait->is_trivial = trait->value != NULL && fx_tensor_is_trivial(trait->value);
    trait->literals = literals_of(execution, i);
    trait->source = execution->wiring == NULL ? i : source_of(traits, i);
}

/* Graph inputs take their traits from their first reader. */
static void fill_inputs(fx_traits *traits)
{
    const fx_execution *execution = traits->execution;
    for (size_t i = 0; i < execution->n_nodes; i++) {
        const fx_exec_node *node = &execution->nodes[i];
        for (size_t k = node->first_tensor; k < node->first_tensor + node->n_tensors; k++) {
            const fxtap_tensor_info *tensor = fx_exec_tensor(execution, k);
            size_t producer;
            if (tensor->io == FXTAP_INPUT && tensor->has_meta &&
                fx_wiring_producer(execution->wiring, i, tensor->position, &producer) &&
                traits->items[producer].is_input && traits->items[producer].value == NULL) {
                traits->items[producer].value = tensor;
                traits->items[producer].is_trivial = fx_tensor_is_trivial(tensor);
                traits->items[producer].module = traits->items[i].module; /* of its first reader */
            }
        }
    }
}

/* ---- readers ---- */

static bool fill_users(fx_arena *arena, fx_traits *traits)
{
    const fx_execution *execution = traits->execution;
    size_t n_edges = 0, n_inputs;
    for (size_t i = 0; i < execution->n_nodes; i++) {
        const size_t *inputs = fx_wiring_inputs(execution->wiring, i, &n_inputs);
        for (size_t k = 0; k < n_inputs && traits->items[i].base != 0; k++) {
            traits->items[traits->items[inputs[k]].source].n_users++;
            n_edges++;
        }
    }
    traits->users = fx_arena_calloc(arena, n_edges + 1, sizeof *traits->users);
    if (traits->users == NULL) {
        return false;
    }
    size_t first = 0;
    for (size_t i = 0; i < execution->n_nodes; i++) {
        traits->items[i].first_user = first;
        first += traits->items[i].n_users;
        traits->items[i].n_users = 0;
    }
    for (size_t i = 0; i < execution->n_nodes; i++) {
        const size_t *inputs = fx_wiring_inputs(execution->wiring, i, &n_inputs);
        bool is_item = execution->nodes[i].operator_name != NULL &&
                       strcmp(execution->nodes[i].operator_name, "operator.getitem") == 0;
        for (size_t k = 0; k < n_inputs && traits->items[i].base != 0; k++) {
            traits->items[inputs[k]].is_tuple |= is_item;
            fx_trait *from = &traits->items[traits->items[inputs[k]].source];
            traits->users[from->first_user + from->n_users++] = (fx_user){(uint32_t)i, (uint32_t)k};
        }
    }
    return true;
}

static bool create_side(fx_arena *arena, const fx_execution *execution, size_t n_root, fx_traits *out)
{
    *out = (fx_traits){.arena = arena, .execution = execution};
    out->items = fx_arena_calloc(arena, execution->n_nodes + 1, sizeof *out->items);
    if (out->items == NULL) {
        return false;
    }
    size_t n_lines = 0, n_dumped = 0;
    for (size_t i = 0; i < execution->n_nodes; i++) {
        fill_node(out, i);
        n_dumped += execution->nodes[i].n_tensors > 0;
        n_lines += execution->nodes[i].n_tensors > 0 && out->items[i].line != 0;
    }
    out->has_lines = 2 * n_lines >= n_dumped && n_lines > 0;
    fill_modules(out, n_root);
    if (execution->wiring == NULL) {
        return true;
    }
    fill_inputs(out);
    return fill_users(arena, out);
}

fxtap_status fx_traits_create(fx_arena *arena, const fx_execution *golden, const fx_execution *target, fx_traits out[2])
{
    size_t roots[2];
    bool done = find_roots(arena, golden, target, roots) && create_side(arena, golden, roots[0], &out[0]) &&
                create_side(arena, target, roots[1], &out[1]);
    return done ? FXTAP_OK : FXTAP_E_NOMEM;
}

/* ---- values ---- */

static size_t without_ones(const fxtap_tensor_info *tensor, int64_t out[FXTAP_MAX_DIMS])
{
    size_t n = 0;
    for (int32_t i = 0; i < tensor->ndim && i < FXTAP_MAX_DIMS; i++) {
        if (tensor->shape[i] != 1) {
            out[n++] = tensor->shape[i];
        }
    }
    return n;
}

bool fx_may_be_reshaped(const fxtap_tensor_info *a, const fxtap_tensor_info *b)
{
    int64_t left[FXTAP_MAX_DIMS], right[FXTAP_MAX_DIMS];
    size_t n_left = without_ones(a, left), n_right = without_ones(b, right);
    if (n_left == n_right) {
        return n_left == 0 || memcmp(left, right, n_left * sizeof *left) == 0;
    }
    return n_left > 0 && n_right > 0 && left[n_left - 1] == right[n_right - 1];
}

static bool is_near(double a, double b, double scale)
{
    return a == b || fabs(a - b) <= scale;
}

static bool are_within(const fxtap_stats *g, const fxtap_stats *t, double part)
{
    double scale = part * fmax(g->rms, t->rms), largest = part * fmax(g->abs_max, t->abs_max);
    return is_near(g->rms, t->rms, scale) && is_near(g->mean, t->mean, scale) && is_near(g->min, t->min, largest) &&
           is_near(g->max, t->max, largest);
}

/* Different bytes, the same element order and exactly equal statistics: the same elements, permuted. */
static bool is_permuted(const fxtap_tensor_info *a, const fxtap_tensor_info *b, bool same_bytes)
{
    bool same_form = fx_same_shape(a, b) && a->saved_dtype == b->saved_dtype;
    if (!same_form || a->ndim < 2 || !a->has_hash || !b->has_hash) {
        return false;
    }
    return a->fortran_order == b->fortran_order ? !same_bytes && are_within(&a->stats, &b->stats, 0.0) : same_bytes;
}

fx_closeness fx_compare_values(const fxtap_tensor_info *golden, const fxtap_tensor_info *target)
{
    bool same_bytes = golden->has_hash && target->has_hash && fx_same_hash(golden->hash, target->hash);
    if (same_bytes && fx_same_shape(golden, target) && golden->fortran_order == target->fortran_order) {
        return FX_VALUES_EQUAL;
    }
    const fxtap_stats *g = &golden->stats, *t = &target->stats;
    if (!golden->has_stats || !target->has_stats || g->count != t->count) {
        return FX_VALUES_UNKNOWN;
    }
    if (g->finite_count != t->finite_count || is_permuted(golden, target, same_bytes)) {
        return FX_VALUES_STRANGE;
    }
    return are_within(g, t, CLOSELY)   ? FX_VALUES_CLOSE
           : are_within(g, t, ROUGHLY) ? FX_VALUES_ROUGHLY
                                       : FX_VALUES_STRANGE;
}
