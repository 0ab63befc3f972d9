/* keys.c - keys of nodes by value, place and operator. */
#include "pair/keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static int compare_keyed(const void *left, const void *right)
{
    const fx_keyed *a = left, *b = right;
    if (a->key != b->key) {
        return a->key < b->key ? -1 : 1;
    }
    return (a->node > b->node) - (a->node < b->node);
}

static uint64_t mix(uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t words[] = {a, b, c};
    return XXH3_64bits(words, sizeof words) | 1u;
}

static uint64_t shape_key(const fx_trait *trait)
{
    const fxtap_tensor_info *value = trait->value;
    return value == NULL ? 0 : XXH3_64bits(value->shape, (size_t)value->ndim * sizeof *value->shape);
}

/* Equal bytes are equal values only if shapes and orders of elements are equal too. */
static uint64_t value_key(const fx_trait *trait)
{
    return mix(trait->value->hash.low, trait->value->hash.high + trait->value->fortran_order, shape_key(trait));
}

/* 0: the node is left out. */
uint64_t fx_key_by_value(const fx_traits *traits, size_t node)
{
    const fx_trait *trait = &traits->items[node];
    bool is_telling = trait->base != 0 && trait->value != NULL && trait->value->has_hash && !trait->is_trivial;
    return is_telling ? mix(value_key(trait), trait->family, 0) : 0;
}

uint64_t fx_key_by_value_alone(const fx_traits *traits, size_t node)
{
    const fx_trait *trait = &traits->items[node];
    bool is_telling = fx_key_by_value(traits, node) != 0 && trait->source == node;
    return is_telling ? mix(value_key(trait), 0, trait->is_input) : 0;
}

uint64_t fx_key_by_elements(const fx_traits *traits, size_t node)
{
    const fxtap_tensor_info *value = traits->items[node].value;
    if (fx_key_by_value(traits, node) == 0) {
        return 0;
    }
    uint64_t shape = XXH3_64bits_withSeed(NULL, 0, (uint64_t)value->fortran_order);
    for (int32_t i = 0; i < value->ndim; i++) {
        shape = value->shape[i] == 1 ? shape : mix(shape, (uint64_t)value->shape[i], 0);
    }
    return mix(value->hash.low, value->hash.high, shape);
}

uint64_t fx_key_by_place(const fx_traits *traits, size_t node)
{
    const fx_trait *trait = &traits->items[node];
    bool is_known = trait->base != 0 && (trait->module != 0 || trait->line != 0);
    return is_known ? mix(trait->family, mix(trait->module, trait->line, trait->is_input), shape_key(trait)) : 0;
}

uint64_t fx_key_by_literals(const fx_traits *traits, size_t node)
{
    uint64_t key = fx_key_by_operator(traits, node), literals = traits->items[node].literals;
    const fx_trait *trait = &traits->items[node];
    return key == 0 || literals == 0 ? 0 : mix(key, literals, mix(trait->module, trait->line, 0));
}

uint64_t fx_key_by_line(const fx_traits *traits, size_t node)
{
    const fx_trait *trait = &traits->items[node];
    return trait->base != 0 && trait->line != 0 ? mix(trait->family, trait->line, shape_key(trait)) : 0;
}

uint64_t fx_key_by_module(const fx_traits *traits, size_t node)
{
    const fx_trait *trait = &traits->items[node];
    return trait->base != 0 && trait->module != 0 ? mix(trait->family, trait->module, shape_key(trait)) : 0;
}

/* For any operator: module, line of code and shape. */
uint64_t fx_key_by_spot(const fx_traits *traits, size_t node)
{
    const fx_trait *trait = &traits->items[node];
    bool is_known =
        trait->base != 0 && !trait->is_input && trait->value != NULL && trait->line != 0 && trait->source == node;
    return is_known ? mix(trait->module, trait->line, shape_key(trait)) : 0;
}

/* For any operator: magnitude to four digits; the two keys round at different points. */
static uint64_t size_key(const fx_traits *traits, size_t node, double shift)
{
    const fx_trait *trait = &traits->items[node];
    bool is_known = trait->base != 0 && !trait->is_trivial && trait->value != NULL && trait->value->has_stats &&
                    isfinite(trait->value->stats.rms) && trait->value->stats.rms > 0.0 && trait->source == node;
    if (!is_known) {
        return 0;
    }
    const fxtap_stats *stats = &trait->value->stats;
    int64_t rms = (int64_t)floor(log(stats->rms) * 5000.0 + shift);
    return mix((uint64_t)rms, stats->count, shape_key(trait));
}

uint64_t fx_key_by_size(const fx_traits *traits, size_t node)
{
    return size_key(traits, node, 0.0);
}

uint64_t fx_key_by_shifted_size(const fx_traits *traits, size_t node)
{
    return size_key(traits, node, 0.5);
}

uint64_t fx_key_by_name(const fx_traits *traits, size_t node)
{
    const fx_exec_node *at = &traits->execution->nodes[node];
    return at->name == NULL ? 0 : XXH3_64bits(at->name, strlen(at->name)) | 1u;
}

uint64_t fx_key_by_operator(const fx_traits *traits, size_t node)
{
    const fx_trait *trait = &traits->items[node];
    return trait->base == 0 || trait->is_input ? 0 : mix(trait->family, 0, shape_key(trait));
}

fx_keyed *fx_list_keys(fx_arena *arena, const fx_traits *traits, fx_key_function key_of, size_t *n_out)
{
    const fx_execution *execution = traits->execution;
    fx_keyed *keys = fx_arena_calloc(arena, execution->n_nodes + 1, sizeof *keys);
    size_t n = 0;
    for (size_t i = 0; keys != NULL && i < execution->n_nodes; i++) {
        uint64_t key = execution->nodes[i].partner == FX_MISSING ? key_of(traits, i) : 0;
        if (key != 0) {
            keys[n++] = (fx_keyed){key, i};
        }
    }
    if (n > 0) {
        qsort(keys, n, sizeof *keys, compare_keyed);
    }
    *n_out = n;
    return keys;
}
