/* calls.h - which calls of two graphs have the same inputs. */
#ifndef FX_PAIR_CALLS_H
#define FX_PAIR_CALLS_H

#include "pair/side.h"
#include "util/arena.h"

/* The signature (0: none yet) of what a call was given, with one more value of this hash. */
uint64_t fx_add_to_signature(uint64_t signature, fxtap_hash128 hash);
/* A signature of each call's weights or, for a backward without weights, of its inputs; 0: unknown. */
fxtap_status fx_sign_calls(const fx_side *side, const fxtap_step_info *const *calls, size_t n, uint64_t *out);

typedef struct fx_call_partners {
    size_t *of_golden; /* for each call of golden, the index of target's, or FX_MISSING */
    bool *is_taken;    /* for each call of target: it is paired */
} fx_call_partners;

/* Pairs each of golden's calls with target's call with the same inputs, where both are without a partner. */
fxtap_status fx_pair_calls(fx_arena *arena, const fx_side *golden_side, const fxtap_step_info *const *golden,
                           size_t n_golden, const fx_side *target_side, const fxtap_step_info *const *target,
                           size_t n_target, fx_call_partners *partners);

#endif
