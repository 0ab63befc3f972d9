#include "verify/verification.h"

#include <math.h>
#include <string.h>

#include "util/error.h"
#include "util/memory.h"

static const char *const verdict_names[FXTAP_VERIFY_COUNT] = {"not replayed", "exact", "rounding", "biased", "wrong"};

const char *fxtap_verify_verdict_name(fxtap_verify_verdict verdict)
{
    return (unsigned)verdict < FXTAP_VERIFY_COUNT ? verdict_names[verdict] : "unknown";
}

fxtap_status fxtap_verify_verdict_from_name(const char *name, fxtap_verify_verdict *out)
{
    FX_REQUIRE(name);
    FX_REQUIRE(out);
    for (int v = 0; v < FXTAP_VERIFY_COUNT; v++) {
        if (strcmp(name, verdict_names[v]) == 0) {
            *out = (fxtap_verify_verdict)v;
            return FXTAP_OK;
        }
    }
    return fx_error(FXTAP_E_INVALID, "verdict '%s' is not known", name);
}

void fxtap_verify_input_init(fxtap_verify_input *input)
{
    *input = (fxtap_verify_input){.struct_size = sizeof *input, .reduction = 1, .wrong_indices = -1};
}

void fxtap_verify_place_init(fxtap_verify_place *place)
{
    *place = (fxtap_verify_place){.struct_size = sizeof *place, .call = -1, .order = -1, .distances = {NAN, NAN, NAN}};
}

/* ---- creating ---- */

fxtap_status fxtap_verification_create(const char *golden, const char *target, fxtap_verification **out)
{
    FX_REQUIRE(target);
    FX_REQUIRE(out);
    fxtap_verification *verification = fx_calloc(1, sizeof *verification);
    if (verification == NULL) {
        return FXTAP_E_NOMEM;
    }
    fx_arena_init(&verification->arena);
    verification->texts.arena = &verification->arena;
    verification->target = fx_arena_strdup(&verification->arena, target);
    verification->golden = golden == NULL ? NULL : fx_arena_strdup(&verification->arena, golden);
    if (verification->arena.failed) {
        fxtap_verification_free(verification);
        return FXTAP_E_NOMEM;
    }
    *out = verification;
    return FXTAP_OK;
}

void fxtap_verification_free(fxtap_verification *verification)
{
    if (verification == NULL) {
        return;
    }
    fx_texts_clear(&verification->texts);
    fx_arena_clear(&verification->arena);
    fx_free(verification->results);
    fx_free(verification->operators);
    fx_free(verification);
}

/* ---- results ---- */

static bool same_operator(const fxtap_verify_place *a, const fxtap_verify_place *b)
{
    return a->rank == b->rank && a->call == b->call && a->step == b->step && a->graph == b->graph &&
           a->order == b->order && strcmp(a->node, b->node) == 0;
}

/* Whether a result says more about its operator than the one that decided so far. */
static bool is_worse(const fxtap_verify_result *result, const fxtap_verify_result *than)
{
    if (result->verdict != than->verdict) {
        return result->verdict > than->verdict;
    }
    bool has_ratio = result->is_measured && !isnan(result->error.ratio);
    return has_ratio && !(than->is_measured && than->error.ratio >= result->error.ratio);
}

static fxtap_status new_operator(fxtap_verification *verification)
{
    if (!fx_grow((void **)&verification->operators, &verification->operators_capacity, verification->n_operators + 1,
                 sizeof *verification->operators)) {
        return FXTAP_E_NOMEM;
    }
    size_t first = verification->n_results - 1;
    fxtap_verify_verdict verdict = verification->results[first].verdict;
    verification->operators[verification->n_operators++] = (fxtap_verify_operator){verdict, first, 1, first};
    verification->counts[verdict]++;
    return FXTAP_OK;
}

static void extend_operator(fxtap_verification *verification)
{
    fxtap_verify_operator *last = &verification->operators[verification->n_operators - 1];
    size_t i = verification->n_results - 1;
    last->n_results++;
    if (is_worse(&verification->results[i], &verification->results[last->worst])) {
        last->worst = i;
        verification->counts[last->verdict]--;
        last->verdict = verification->results[i].verdict;
        verification->counts[last->verdict]++;
    }
}

fxtap_status fx_verification_append(fxtap_verification *verification, const fxtap_verify_result *result)
{
    size_t n = verification->n_results;
    if (!fx_grow((void **)&verification->results, &verification->results_capacity, n + 1,
                 sizeof *verification->results)) {
        return FXTAP_E_NOMEM;
    }
    verification->results[verification->n_results++] = *result;
    if (n > 0 && same_operator(&verification->results[n - 1].place, &result->place)) {
        extend_operator(verification);
        return FXTAP_OK;
    }
    fxtap_status status = new_operator(verification);
    if (status != FXTAP_OK) {
        verification->n_results = n;
    }
    return status;
}

/* The table's copy of a text; "" for NULL. */
static const char *keep(fxtap_verification *verification, const char *text)
{
    text = text == NULL ? "" : text;
    return fx_texts_keep(&verification->texts, text, strlen(text));
}

static fxtap_status keep_place(fxtap_verification *verification, const fxtap_verify_place *place,
                               fxtap_verify_place *out)
{
    *out = *place;
    const char **texts[] = {&out->node,        &out->operator_name,   &out->slot,
                            &out->source_file, &out->source_function, &out->source_code,
                            &out->module_path};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        *texts[i] = keep(verification, *texts[i]);
        if (*texts[i] == NULL) {
            return FXTAP_E_NOMEM;
        }
    }
    out->shape = NULL;
    out->inputs = NULL;
    if (place->ndim > 0) {
        out->shape = fx_arena_copy(&verification->arena, place->shape, (size_t)place->ndim, sizeof *place->shape);
    }
    if (place->n_inputs > 0) {
        out->inputs = fx_arena_copy(&verification->arena, place->inputs, place->n_inputs, sizeof *place->inputs);
    }
    return verification->arena.failed ? FXTAP_E_NOMEM : FXTAP_OK;
}

static fxtap_status check_place(const fxtap_verify_place *place, fxtap_verify_verdict verdict)
{
    if (place->struct_size < sizeof *place) {
        return fx_error(FXTAP_E_INVALID, "verify place of %zu bytes, expected %zu", place->struct_size, sizeof *place);
    }
    if (place->ndim < 0 || place->ndim > FXTAP_MAX_DIMS || (place->ndim > 0 && place->shape == NULL)) {
        return fx_error(FXTAP_E_INVALID, "node '%s': invalid shape of %d dimensions",
                        place->node == NULL ? "" : place->node, (int)place->ndim);
    }
    if ((unsigned)verdict >= FXTAP_VERIFY_COUNT) {
        return fx_error(FXTAP_E_INVALID, "verdict %d is not known", (int)verdict);
    }
    return FXTAP_OK;
}

fxtap_status fxtap_verification_add(fxtap_verification *verification, const fxtap_verify_place *place,
                                    fxtap_verify_verdict verdict, const char *reason)
{
    FX_REQUIRE(verification);
    FX_REQUIRE(place);
    fxtap_status status = check_place(place, verdict);
    if (status != FXTAP_OK) {
        return status;
    }
    fxtap_verify_result result = {.verdict = verdict};
    status = keep_place(verification, place, &result.place);
    const fx_judgement *judgement = &verification->judgement;
    if (verification->is_judged) {
        result.is_measured = true;
        result.has_third = judgement->has_third;
        result.error = judgement->error;
        result.third = judgement->third;
        reason = reason == NULL ? judgement->reason : reason;
    }
    result.reason = keep(verification, reason);
    if (status == FXTAP_OK) {
        status = result.reason == NULL ? FXTAP_E_NOMEM : fx_verification_append(verification, &result);
    }
    verification->is_judged = false;
    return status;
}

fxtap_status fxtap_verification_judge(fxtap_verification *verification, const fxtap_verify_input *input,
                                      fxtap_verify_need *need_out, fxtap_verify_verdict *verdict_out)
{
    FX_REQUIRE(verification);
    FX_REQUIRE(need_out);
    FX_REQUIRE(verdict_out);
    verification->is_judged = false;
    fxtap_status status = fx_judge_rounding(input, &verification->judgement);
    if (status != FXTAP_OK) {
        return status;
    }
    *need_out = verification->judgement.need;
    *verdict_out = verification->judgement.verdict;
    verification->is_judged = verification->judgement.need == FXTAP_NEED_NOTHING;
    return FXTAP_OK;
}

/* ---- accessors ---- */

size_t fxtap_verification_result_count(const fxtap_verification *verification)
{
    return verification->n_results;
}

const fxtap_verify_result *fxtap_verification_result(const fxtap_verification *verification, size_t i)
{
    return i < verification->n_results ? &verification->results[i] : NULL;
}

size_t fxtap_verification_operator_count(const fxtap_verification *verification)
{
    return verification->n_operators;
}

const fxtap_verify_operator *fxtap_verification_operator(const fxtap_verification *verification, size_t i)
{
    return i < verification->n_operators ? &verification->operators[i] : NULL;
}

uint64_t fxtap_verification_count(const fxtap_verification *verification, fxtap_verify_verdict verdict)
{
    return (unsigned)verdict < FXTAP_VERIFY_COUNT ? verification->counts[verdict] : 0;
}

bool fxtap_verification_is_wrong(const fxtap_verification *verification)
{
    return verification->counts[FXTAP_VERIFY_WRONG] + verification->counts[FXTAP_VERIFY_BIASED] > 0;
}
