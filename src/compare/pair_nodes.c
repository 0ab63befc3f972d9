/*
 * pair_nodes.c - which node of one graph is compared with which of the other.
 *
 * One pass after the other, each over what is still alone, each by a key: equal keys pair in order of execution. The
 * passes go from sure to guessed: the given map; position in graphs of equal structure; name, target and code line;
 * name and target where a side has no source; code line and target; name and target although the code was edited; target
 * and order between neighbours that did pair; last, operators of one code line that was decomposed in another way.
 */
#include <stdlib.h>
#include <string.h>

#include "compare/pair_nodes.h"
#include "util/memory.h"

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

/* ---- keys: NULL means that the node takes no part in the pass ---- */

static const char *key_by_position(fx_arena *arena, const fx_node_list *list, size_t i, bool is_golden)
{
    (void)is_golden;
    const fxtap_node_info *info = list->items[i].info;
    return info == NULL ? NULL : fx_arena_printf(arena, "%zu\x1f%s", info->order, info->target);
}

static const char *key_by_name_and_code(fx_arena *arena, const fx_node_list *list, size_t i, bool is_golden)
{
    (void)is_golden;
    const fx_node_entry *node = &list->items[i];
    return fx_arena_printf(arena, "%s\x1f%s\x1f%s", node->name, node->target, code_of(node));
}

static const char *key_by_name(fx_arena *arena, const fx_node_list *list, size_t i, bool is_golden)
{
    (void)is_golden;
    return fx_arena_printf(arena, "%s\x1f%s", list->items[i].name, list->items[i].target);
}

static const char *key_by_code(fx_arena *arena, const fx_node_list *list, size_t i, bool is_golden)
{
    (void)is_golden;
    const fx_node_entry *node = &list->items[i];
    if (code_of(node)[0] == '\0') {
        return NULL;
    }
    return fx_arena_printf(arena, "%s\x1f%s\x1f%s\x1f%s\x1f%s", base_name(node->info->source_file),
                           node->info->source_function, code_of(node), node->info->module_path, node->target);
}

static const char *key_by_neighbours(fx_arena *arena, const fx_node_list *list, size_t i, bool is_golden)
{
    const fx_node_entry *node = &list->items[i];
    if (node->info == NULL) {
        return NULL; /* plain files pair by their paths alone */
    }
    size_t anchor = 0; /* the golden index, plus one, of the nearest paired node before this one */
    for (size_t before = i; before > 0 && anchor == 0; before--) {
        const fx_node_entry *other = &list->items[before - 1];
        if (other->partner != FX_MISSING) {
            anchor = is_golden ? before : other->partner + 1;
        }
    }
    return fx_arena_printf(arena, "%zu\x1f%s", anchor, node->target);
}

/* The last operator of a code line that is still alone: what the line computes, however it is decomposed. */
static const char *key_by_line_end(fx_arena *arena, const fx_node_list *list, size_t i, bool is_golden)
{
    (void)is_golden;
    const fx_node_entry *node = &list->items[i];
    if (code_of(node)[0] == '\0') {
        return NULL;
    }
    for (size_t after = i + 1; after < list->n_items; after++) {
        const fx_node_entry *other = &list->items[after];
        if (strcmp(code_of(other), code_of(node)) != 0 || strcmp(other->info->module_path, node->info->module_path) != 0) {
            break;
        }
        if (other->partner == FX_MISSING) {
            return NULL;
        }
    }
    return fx_arena_printf(arena, "%s\x1f%s\x1f%s", base_name(node->info->source_file), code_of(node),
                           node->info->module_path);
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
            if (key != NULL) {
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

static fxtap_status pass(fx_node_list *golden, fx_node_list *target, key_function key_of, fxtap_pairing pairing,
                         double confidence)
{
    fx_arena arena;
    fx_arena_init(&arena);
    keyed *left, *right;
    size_t n_left, n_right;
    fxtap_status status = list_keys(&arena, golden, key_of, true, &left, &n_left);
    if (status == FXTAP_OK) {
        status = list_keys(&arena, target, key_of, false, &right, &n_right);
    }
    if (status == FXTAP_OK) {
        for (size_t g = 0, t = 0; g < n_left && t < n_right;) {
            int order = strcmp(left[g].key, right[t].key);
            if (order == 0) {
                fx_join_nodes(golden, left[g].node, target, right[t].node, pairing, confidence);
            }
            g += order <= 0;
            t += order >= 0;
        }
    }
    fx_arena_clear(&arena);
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

static bool has_sources(const fx_node_list *list)
{
    for (size_t i = 0; i < list->n_items; i++) {
        if (code_of(&list->items[i])[0] != '\0') {
            return true;
        }
    }
    return false;
}

fxtap_status fx_match_nodes(const fx_map *map, bool same_structure, fx_node_list *golden, fx_node_list *target)
{
    bool both_have_sources = has_sources(golden) && has_sources(target);
    fxtap_status status = map_pass(map, golden, target);
    if (status == FXTAP_OK && same_structure) {
        status = pass(golden, target, key_by_position, FXTAP_PAIR_EXACT, 1.0);
    }
    if (status == FXTAP_OK) {
        status = pass(golden, target, both_have_sources ? key_by_name_and_code : key_by_name, FXTAP_PAIR_EXACT, 1.0);
    }
    if (status == FXTAP_OK) {
        status = pass(golden, target, key_by_code, FXTAP_PAIR_SOURCE, 0.9);
    }
    if (status == FXTAP_OK) {
        status = pass(golden, target, key_by_name, FXTAP_PAIR_EXACT, 0.8);
    }
    if (status == FXTAP_OK) {
        status = pass(golden, target, key_by_neighbours, FXTAP_PAIR_ORDER, 0.5);
    }
    if (status == FXTAP_OK) {
        status = pass(golden, target, key_by_line_end, FXTAP_PAIR_SOURCE, 0.6);
    }
    return status;
}
