/* align.c - pairs the nodes of two executions greedily, the highest score first. */
#include "pair/align.h"

#include <stdlib.h>
#include <string.h>

#include "pair/keys.h"
#include "pair/map.h"
#include "util/memory.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#define SURE 10       /* pairs with this score are made first */
#define LIKELY 6      /* then pairs with this score that the wiring or the value supports */
#define MOST_CROSS 64 /* candidates of a key that are all scored; if there are more, only in order */
#define MOST_USERS 64 /* the same for the readers of two values */
#define REACH 32      /* nodes examined between two pairs */

typedef struct candidate {
    int32_t score;
    uint32_t g, t;
    bool is_only; /* no other unpaired node of either side has its operator, line, module and shape */
} candidate;

typedef struct alignment {
    fx_execution *golden, *target;
    fx_traits traits[2];
    fx_arena arena;
    candidate *heap; /* the best on top; among equals the earlier one */
    size_t n_heap, heap_capacity;
    int32_t floor;
    bool takes_only; /* a candidate may become a pair because it is the only one with its key */
} alignment;

void fx_join(fx_execution *golden, size_t g, fx_execution *target, size_t t, uint32_t evidence, int32_t score)
{
    golden->nodes[g].partner = t;
    target->nodes[t].partner = g;
    golden->nodes[g].evidence = target->nodes[t].evidence = evidence;
    golden->nodes[g].score = target->nodes[t].score = score;
}

/* ---- the heap ---- */

static bool is_better(const candidate *a, const candidate *b)
{
    if (a->score != b->score) {
        return a->score > b->score;
    }
    return a->g != b->g ? a->g < b->g : a->t < b->t;
}

static bool push(alignment *a, candidate new)
{
    if (!fx_grow((void **)&a->heap, &a->heap_capacity, a->n_heap + 1, sizeof *a->heap)) {
        return false;
    }
    size_t at = a->n_heap++;
    while (at > 0 && is_better(&new, &a->heap[(at - 1) / 2])) {
        a->heap[at] = a->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    a->heap[at] = new;
    return true;
}

static candidate pop(alignment *a)
{
    candidate top = a->heap[0], last = a->heap[--a->n_heap];
    size_t at = 0;
    for (size_t child = 1; child < a->n_heap; child = 2 * at + 1) {
        child += child + 1 < a->n_heap && is_better(&a->heap[child + 1], &a->heap[child]);
        if (!is_better(&a->heap[child], &last)) {
            break;
        }
        a->heap[at] = a->heap[child];
        at = child;
    }
    a->heap[at] = last;
    return top;
}

static bool is_free(const alignment *a, size_t g, size_t t)
{
    return a->golden->nodes[g].partner == FX_MISSING && a->target->nodes[t].partner == FX_MISSING;
}

/* Whether the score permits a pair now: a likely pair needs support from value or wiring, and nothing against it. */
static bool is_enough(const alignment *a, const fx_weighing *found, bool is_only)
{
    bool is_one_operator = (found->evidence & (FX_EV_OPERATOR | FX_EV_FAMILY)) != 0;
    bool is_supported = fx_is_supported(found->evidence) || (is_only && is_one_operator);
    return (found->score >= SURE && (is_one_operator || is_supported)) ||
           (found->score >= a->floor && is_supported && (found->n_against == 0 || fx_is_misreading(found->evidence)));
}

/* Scores two nodes that may be a pair; false: no memory. */
static bool weigh(alignment *a, size_t g, size_t t, bool is_only)
{
    if (!is_free(a, g, t)) {
        return true;
    }
    fx_weighing found = fx_weigh(&a->traits[0], g, &a->traits[1], t);
    return !is_enough(a, &found, is_only) || push(a, (candidate){found.score, (uint32_t)g, (uint32_t)t, is_only});
}

static bool consider(alignment *a, size_t g, size_t t)
{
    return weigh(a, g, t, false);
}

/* ---- candidates by key ---- */

static size_t run_length(const fx_keyed *keys, size_t n)
{
    size_t length = 1;
    while (length < n && keys[length].key == keys[0].key) {
        length++;
    }
    return length;
}

/* Every node of a key with every other if they are few; else those with the same index. */
static bool consider_run(alignment *a, const fx_keyed *left, size_t n_left, const fx_keyed *right, size_t n_right)
{
    bool done = true;
    if (n_left == 1 && n_right == 1) {
        return weigh(a, left[0].node, right[0].node, a->takes_only);
    }
    bool is_cross = n_left <= MOST_CROSS && n_right <= MOST_CROSS && n_left * n_right <= MOST_CROSS;
    for (size_t i = 0; i < n_left && done; i++) {
        if (is_cross) {
            for (size_t k = 0; k < n_right && done; k++) {
                done = consider(a, left[i].node, right[k].node);
            }
        } else if (i < n_right) {
            done = consider(a, left[i].node, right[i].node);
            if (n_right != n_left && n_right >= n_left - i) { /* and counted from the end, if one side has more */
                done = done && consider(a, left[i].node, right[n_right - (n_left - i)].node);
            }
        }
    }
    return done;
}

static bool consider_keys(alignment *a, fx_key_function key_of)
{
    fx_arena arena;
    fx_arena_init(&arena);
    size_t n_left, n_right;
    fx_keyed *left = fx_list_keys(&arena, &a->traits[0], key_of, &n_left);
    fx_keyed *right = fx_list_keys(&arena, &a->traits[1], key_of, &n_right);
    bool done = left != NULL && right != NULL;
    for (size_t g = 0, t = 0; done && g < n_left && t < n_right;) {
        size_t n_g = left[g].key <= right[t].key ? run_length(left + g, n_left - g) : 0;
        size_t n_t = right[t].key <= left[g].key ? run_length(right + t, n_right - t) : 0;
        if (n_g > 0 && n_t > 0) {
            done = consider_run(a, left + g, n_g, right + t, n_t);
        }
        g += n_g;
        t += n_t;
    }
    fx_arena_clear(&arena);
    return done;
}

/* ---- candidates by wiring ---- */

/* What two paired nodes read at the same positions. */
static bool consider_sources(alignment *a, size_t g, size_t t)
{
    const fx_wiring *golden = a->golden->wiring, *target = a->target->wiring;
    size_t n_left, n_right;
    const size_t *left = fx_wiring_inputs(golden, g, &n_left), *right = fx_wiring_inputs(target, t, &n_right);
    bool is_any = a->traits[0].items[g].is_commutative || n_left * n_right == 1, done = true;
    for (size_t i = 0; i < n_left && done; i++) {
        size_t first = i < MOST_USERS ? 0 : i, end = i < MOST_USERS || i >= n_right ? n_right : i + 1;
        for (size_t k = first; k < end && done; k++) { /* if there are many inputs, only those with the same index */
            bool is_place = is_any || strcmp(fx_wiring_position(golden, g, i), fx_wiring_position(target, t, k)) == 0;
            if (is_place) {
                done =
                    consider(a, left[i], right[k]) && /* the producers themselves, and the values that they pass on */
                    consider(a, a->traits[0].items[left[i]].source, a->traits[1].items[right[k]].source);
            }
        }
    }
    return done;
}

/* The readers of two paired values whose operators are of one family. */
static bool consider_users(alignment *a, size_t g, size_t t)
{
    const fx_traits *golden = &a->traits[0], *target = &a->traits[1];
    const fx_trait *left = &golden->items[g], *right = &target->items[t];
    bool done = true;
    if (left->n_users * right->n_users > MOST_USERS) {
        for (size_t i = 0; i < left->n_users && i < right->n_users && done; i++) {
            done = consider(a, golden->users[left->first_user + i].node, target->users[right->first_user + i].node);
        }
        return done;
    }
    for (size_t i = 0; i < left->n_users && done; i++) {
        size_t reader = golden->users[left->first_user + i].node;
        for (size_t k = 0; k < right->n_users && done; k++) {
            size_t other = target->users[right->first_user + k].node;
            if (golden->items[reader].family == target->items[other].family) {
                done = consider(a, reader, other);
            }
        }
    }
    return done;
}

static bool consider_neighbours(alignment *a, size_t g, size_t t)
{
    return a->golden->wiring == NULL || a->target->wiring == NULL ||
           (consider_sources(a, g, t) && consider_users(a, g, t));
}

/* ---- making pairs ---- */

/* Pairs the candidates on the heap and those that each new pair adds, until the heap is empty. */
static bool settle(alignment *a)
{
    bool done = true;
    while (done && a->n_heap > 0) {
        candidate top = pop(a);
        if (!is_free(a, top.g, top.t)) {
            continue;
        }
        fx_weighing found = fx_weigh(&a->traits[0], top.g, &a->traits[1], top.t);
        if (!is_enough(a, &found, top.is_only)) {
            continue;
        }
        if (found.score < top.score) { /* the score has dropped since: back onto the heap */
            done = push(a, (candidate){found.score, top.g, top.t, top.is_only});
            continue;
        }
        fx_join(a->golden, top.g, a->target, top.t, found.evidence, found.score);
        done = consider_neighbours(a, top.g, top.t);
    }
    return done;
}

static bool consider_all_neighbours(alignment *a)
{
    bool done = true;
    for (size_t g = 0; g < a->golden->n_nodes && done; g++) {
        size_t t = a->golden->nodes[g].partner;
        done = t == FX_MISSING || consider_neighbours(a, g, t);
    }
    return done;
}

/* ---- between pairs ---- */

/* Pairs unpaired nodes after the same preceding pair on both sides: in order, by operator and shape. */
static bool fill_gaps(alignment *a)
{
    size_t next = 0; /* in target, after the last pair or match */
    bool done = true;
    for (size_t g = 0; g < a->golden->n_nodes && done; g++) {
        if (a->golden->nodes[g].partner != FX_MISSING) {
            next = a->golden->nodes[g].partner + 1;
            continue;
        }
        uint64_t key = fx_key_by_operator(&a->traits[0], g);
        for (size_t t = next; key != 0 && t < a->target->n_nodes && t < next + REACH; t++) {
            if (a->target->nodes[t].partner != FX_MISSING && a->traits[1].items[t].base != 0) {
                break;
            }
            fx_weighing found = fx_weigh(&a->traits[0], g, &a->traits[1], t);
            bool is_one = is_free(a, g, t) && key == fx_key_by_operator(&a->traits[1], t) && found.n_against == 0 &&
                          found.score >= LIKELY - 2 && (found.evidence & FX_EV_STRANGER) == 0;
            if (is_one) {
                fx_join(a->golden, g, a->target, t, found.evidence | FX_EV_ORDER, found.score);
                next = t + 1;
                done = consider_neighbours(a, g, t) && settle(a);
                break;
            }
        }
    }
    return done;
}

/* ---- confirmation ---- */

/* Scores every pair again, now that its neighbours are known, and removes pairs without support. */
static void confirm(alignment *a)
{
    for (size_t g = 0; g < a->golden->n_nodes; g++) {
        fx_exec_node *node = &a->golden->nodes[g];
        size_t t = node->partner;
        bool is_given = (node->evidence & (FX_EV_STRUCTURE | FX_EV_MAP)) != 0;
        if (t == FX_MISSING || is_given || a->traits[0].items[g].base == 0 || a->traits[0].items[g].is_output) {
            continue;
        }
        fx_weighing found = fx_weigh(&a->traits[0], g, &a->traits[1], t);
        found.evidence |= node->evidence & FX_EV_ORDER;
        fx_join(a->golden, g, a->target, t, found.evidence, found.score);
        if (!fx_is_confirmed(found.evidence)) {
            node->partner = a->target->nodes[t].partner = FX_MISSING;
            node->evidence = a->target->nodes[t].evidence = 0;
        }
    }
}

/* ---- the map, and plain files ---- */

/* The unpaired target node with this name; FX_MISSING: none. */
static size_t find_named(const alignment *a, const fx_keyed *names, size_t n_names, const char *wanted)
{
    uint64_t key = XXH3_64bits(wanted, strlen(wanted)) | 1u;
    size_t low = 0, high = n_names;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (names[middle].key < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    for (; low < n_names && names[low].key == key; low++) {
        const fx_exec_node *node = &a->target->nodes[names[low].node];
        if (node->partner == FX_MISSING && strcmp(node->name, wanted) == 0) {
            return names[low].node;
        }
    }
    return FX_MISSING;
}

static bool join_mapped(alignment *a, const fx_map *map)
{
    size_t n_names = 0;
    fx_keyed *names = map == NULL ? NULL : fx_list_keys(&a->arena, &a->traits[1], fx_key_by_name, &n_names);
    char wanted[4096];
    if (map == NULL || names == NULL) {
        return map == NULL;
    }
    for (size_t g = 0; g < a->golden->n_nodes; g++) {
        const fx_exec_node *node = &a->golden->nodes[g];
        size_t entry = node->n_tensors == 0 ? 0 : fx_map_apply(map, node->name, wanted, sizeof wanted);
        size_t t = entry == 0 ? FX_MISSING : find_named(a, names, n_names, wanted);
        if (t != FX_MISSING) {
            fx_join(a->golden, g, a->target, t, FX_EV_MAP, 100);
            fx_map_note_use(map, entry);
        }
    }
    return true;
}

static bool is_plain_file(const fx_exec_node *node)
{
    return node->info == NULL && node->n_tensors > 0;
}

/* A plain file has only its name. */
static bool join_plain_files(alignment *a)
{
    size_t n_names = 0;
    fx_keyed *names = NULL;
    for (size_t g = 0; g < a->golden->n_nodes; g++) {
        const fx_exec_node *node = &a->golden->nodes[g];
        if (!is_plain_file(node) || node->partner != FX_MISSING) {
            continue;
        }
        names = names == NULL ? fx_list_keys(&a->arena, &a->traits[1], fx_key_by_name, &n_names) : names;
        if (names == NULL) {
            return false;
        }
        size_t t = find_named(a, names, n_names, node->name);
        if (t != FX_MISSING && is_plain_file(&a->target->nodes[t])) {
            fx_join(a->golden, g, a->target, t, FX_EV_NAME, 20);
        }
    }
    return true;
}

/* ---- what the graphs return ---- */

/* The output node of a call, which is the last of its record; SIZE_MAX: none. */
static size_t output_of(const fx_traits *traits, const fx_exec_call *call)
{
    size_t last = call->first_node + call->n_nodes - 1;
    return call->n_nodes > 0 && traits->items[last].is_output ? last : SIZE_MAX;
}

/* Pairs the output nodes from the last call backwards, forward and backward calls separately. */
static void join_outputs(alignment *a)
{
    size_t n_right[2] = {a->target->n_calls, a->target->n_calls}; /* forward calls, backward calls */
    for (size_t i = a->golden->n_calls; i-- > 0;) {
        const fx_exec_call *call = &a->golden->calls[i];
        bool is_backward = call->graph != NULL && call->graph->kind == FXTAP_GRAPH_BACKWARD;
        size_t g = output_of(&a->traits[0], call);
        for (size_t k = n_right[is_backward]; g != SIZE_MAX && k-- > 0;) {
            const fx_exec_call *other = &a->target->calls[k];
            size_t t = output_of(&a->traits[1], other);
            if (t != SIZE_MAX && (other->graph->kind == FXTAP_GRAPH_BACKWARD) == is_backward && is_free(a, g, t)) {
                fx_join(a->golden, g, a->target, t, FX_EV_ORDER, 0);
                n_right[is_backward] = k;
                break;
            }
        }
    }
}

static bool align(alignment *a, const fx_map *map)
{
    static const fx_key_function keys[] = {fx_key_by_value, fx_key_by_value_alone, fx_key_by_literals,
                                           fx_key_by_place, fx_key_by_line,        fx_key_by_module,
                                           fx_key_by_spot,  fx_key_by_size,        fx_key_by_shifted_size};
    bool is_unwired = a->golden->wiring == NULL || a->target->wiring == NULL;
    bool done = join_mapped(a, map) && join_plain_files(a) && fx_align_calls(&a->arena, a->golden, a->target);
    a->floor = SURE;
    for (int round = 0; round < 2 && done; round++) {
        for (size_t i = 0; i < sizeof keys / sizeof keys[0] && done; i++) {
            done = consider_keys(a, keys[i]);
        }
        done = done && (!is_unwired || consider_keys(a, fx_key_by_name)) && consider_all_neighbours(a) && settle(a);
        a->floor = LIKELY;
    }
    a->takes_only = true;
    join_outputs(a);
    done = done && consider_keys(a, fx_key_by_place) && consider_all_neighbours(a) && settle(a);
    done = done && fill_gaps(a);
    if (done) {
        confirm(a);
        done = fx_join_leftovers(&a->arena, a->traits, a->golden, a->target);
    }
    return done;
}

static void keep_sources(fx_execution *execution, const fx_traits *traits)
{
    for (size_t i = 0; i < execution->n_nodes; i++) {
        execution->nodes[i].source = traits->items[i].source;
    }
}

fxtap_status fx_align(const fx_alignment_options *options, fx_execution *golden, fx_execution *target)
{
    alignment a = {.golden = golden, .target = target};
    fx_arena_init(&a.arena);
    bool done = golden->n_nodes < UINT32_MAX && target->n_nodes < UINT32_MAX &&
                fx_traits_create(&a.arena, golden, target, a.traits) == FXTAP_OK && align(&a, options->map);
    if (done && options->explain != NULL) {
        fx_explain(a.traits, options->explain, options->explanation);
    }
    if (done) {
        keep_sources(golden, &a.traits[0]);
        keep_sources(target, &a.traits[1]);
    }
    fx_free(a.heap);
    fx_arena_clear(&a.arena);
    return done ? FXTAP_OK : FXTAP_E_NOMEM;
}
