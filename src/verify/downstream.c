/*
 * downstream.c - what differs from golden only because of one wrong operator: results of right operators that read,
 * directly or through others, what it made, and nothing else that differs for a reason of its own.
 *
 * Operators are visited in order of execution. Each value has an owner: the wrong operator that it comes from, or
 * SEVERAL if another wrong operator, or a difference that no wrong operator made (an input, rounding), has a part
 * in it.
 */
#include "util/memory.h"
#include "util/table.h"
#include "verify/print.h"

#define NONE SIZE_MAX
#define SEVERAL (SIZE_MAX - 1)

typedef struct owned_value {
    fxtap_hash128 key;
    size_t owner;
} owned_value;

static fxtap_hash128 key_of(int32_t rank, uint64_t hash)
{
    return (fxtap_hash128){.low = hash, .high = (uint32_t)rank};
}

static size_t owner_of(const fx_table *owners, int32_t rank, const fxtap_verify_value *value)
{
    const owned_value *found = value->hash == 0 ? NULL : fx_table_find(owners, key_of(rank, value->hash));
    size_t owner = found == NULL ? NONE : found->owner;
    return owner == NONE && value->differs ? SEVERAL : owner;
}

static size_t owner_of_inputs(const fx_table *owners, const fxtap_verify_place *place)
{
    size_t owner = NONE;
    for (size_t i = 0; i < place->n_inputs; i++) {
        size_t one = owner_of(owners, place->rank, &place->inputs[i]);
        owner = owner == NONE || owner == one ? one : one == NONE ? owner : SEVERAL;
    }
    return owner;
}

static fxtap_status own(fx_table *owners, const fxtap_verify_place *place, size_t owner)
{
    fxtap_hash128 key = key_of(place->rank, place->value.hash);
    owned_value *value = place->value.hash == 0 ? NULL : fx_table_find(owners, key);
    if (value == NULL && place->value.hash != 0 && owner != NONE) {
        value = fx_table_insert(owners, key);
        if (value == NULL) {
            return FXTAP_E_NOMEM;
        }
    }
    if (value != NULL) {
        value->owner = owner;
    }
    return FXTAP_OK;
}

/* The owner of a result of operator `i`, whose inputs have the owner `from`; counts the result if it differs. */
static size_t pass_on(fx_downstream *found, size_t i, size_t i_result, const fxtap_verify_result *result, size_t from)
{
    if (fx_verdict_accuses(result->verdict)) {
        return from == NONE ? i : SEVERAL;
    }
    if (!result->place.value.differs) {
        return from;
    }
    if (from == NONE || result->verdict == FXTAP_VERIFY_NOT_REPLAYED) {
        return SEVERAL;
    }
    if (from != SEVERAL) {
        found[from].first = found[from].count++ == 0 ? i_result : found[from].first;
    }
    return from;
}

fxtap_status fx_find_downstream(const fxtap_verification *verification, fx_downstream **out)
{
    fx_downstream *found = fx_calloc(verification->n_operators + 1, sizeof *found);
    if (found == NULL) {
        return FXTAP_E_NOMEM;
    }
    fxtap_status status = FXTAP_OK;
    fx_table owners;
    fx_table_init(&owners, sizeof(owned_value), UINT32_MAX - 1, NULL, NULL);
    for (size_t i = 0; i < verification->n_operators; i++) {
        const fxtap_verify_operator *called = &verification->operators[i];
        size_t from = owner_of_inputs(&owners, &verification->results[called->first_result].place);
        for (size_t k = called->first_result; k < called->first_result + called->n_results; k++) {
            const fxtap_verify_result *result = &verification->results[k];
            size_t owner = pass_on(found, i, k, result, from);
            status = status == FXTAP_OK ? own(&owners, &result->place, owner) : status;
        }
    }
    fx_table_clear(&owners);
    if (status != FXTAP_OK) {
        fx_free(found);
        return status;
    }
    *out = found;
    return FXTAP_OK;
}
