/*
 * rules.c - which tolerance applies to a pair.
 *
 * Defaults are torch.testing.assert_close's, per original dtype
 * (https://docs.pytorch.org/docs/stable/testing.html); float8 and smaller, which it does not support, get one unit of
 * their own precision.
 */
#include <string.h>

#include "compare/report.h"
#include "compare/rules.h"

typedef struct tolerance_row {
    fxtap_dtype dtype;
    double rtol;
    double atol;
} tolerance_row;

/* In order of precision, the least precise first: fx_judged_dtype() depends on it. */
static const tolerance_row defaults[] = {
    {FXTAP_FLOAT4_E2M1FN_X2, 0.5, 1e-5},  {FXTAP_FLOAT8_E8M0FNU, 1.0, 0.0},
    {FXTAP_FLOAT6_E3M2FN, 0.25, 1e-5},    {FXTAP_FLOAT6_E2M3FN, 0.125, 1e-5},
    {FXTAP_FLOAT8_E5M2, 0.25, 1e-5},      {FXTAP_FLOAT8_E5M2FNUZ, 0.25, 1e-5},
    {FXTAP_FLOAT8_E4M3, 0.125, 1e-5},     {FXTAP_FLOAT8_E4M3FN, 0.125, 1e-5},
    {FXTAP_FLOAT8_E4M3FNUZ, 0.125, 1e-5}, {FXTAP_FLOAT8_E4M3B11FNUZ, 0.125, 1e-5},
    {FXTAP_FLOAT8_E3M4, 0.0625, 1e-5},    {FXTAP_BFLOAT16, 1.6e-2, 1e-5},
    {FXTAP_FLOAT16, 1e-3, 1e-5},          {FXTAP_COMPLEX32, 1e-3, 1e-5},
    {FXTAP_FLOAT32, 1.3e-6, 1e-5},        {FXTAP_COMPLEX64, 1.3e-6, 1e-5},
    {FXTAP_FLOAT64, 1e-7, 1e-7},          {FXTAP_COMPLEX128, 1e-7, 1e-7},
};

static size_t precision_rank(fxtap_dtype dtype)
{
    size_t n = sizeof defaults / sizeof defaults[0];
    for (size_t i = 0; i < n; i++) {
        if (defaults[i].dtype == dtype) {
            return i;
        }
    }
    return n; /* integers and bool: exact */
}

void fx_default_tolerance(fxtap_dtype dtype, double *rtol_out, double *atol_out)
{
    size_t rank = precision_rank(dtype);
    bool is_exact = rank == sizeof defaults / sizeof defaults[0];
    *rtol_out = is_exact ? 0.0 : defaults[rank].rtol;
    *atol_out = is_exact ? 0.0 : defaults[rank].atol;
}

fxtap_dtype fx_judged_dtype(fxtap_dtype golden, fxtap_dtype target)
{
    return precision_rank(golden) <= precision_rank(target) ? golden : target;
}

static bool rule_matches(const fxtap_rule *rule, const fxtap_pair *pair, fxtap_dtype dtype)
{
    if (rule->dtype != NULL && fxtap_dtype_from_name(rule->dtype) != dtype) {
        return false;
    }
    if (rule->operator_name != NULL && !fxtap_glob_match(rule->operator_name, pair->operator_name)) {
        return false;
    }
    return rule->node == NULL || fxtap_glob_match(rule->node, pair->node) || fxtap_glob_match(rule->node, pair->name);
}

static void take(double given, double *value)
{
    if (given >= 0.0) {
        *value = given;
    }
}

void fx_tolerance_for(const fxtap_rule *rules, size_t n_rules, const fxtap_pair *pair, fx_tolerance *out)
{
    fxtap_dtype dtype = fx_judged_dtype(pair->golden_dtype, pair->target_dtype);
    *out = (fx_tolerance){.min_cosine = -1, .max_abs = -1, .max_rel_l2 = -1, .max_ulp = -1};
    fx_default_tolerance(dtype, &out->rtol, &out->atol);
    bool has_elementwise_rule = false;
    for (size_t i = 0; i < n_rules; i++) {
        const fxtap_rule *rule = &rules[i];
        if (!rule_matches(rule, pair, dtype)) {
            continue;
        }
        take(rule->rtol, &out->rtol);
        take(rule->atol, &out->atol);
        take(rule->min_cosine, &out->min_cosine);
        take(rule->max_abs, &out->max_abs);
        take(rule->max_rel_l2, &out->max_rel_l2);
        take(rule->max_ulp, &out->max_ulp);
        has_elementwise_rule |= rule->rtol >= 0.0 || rule->atol >= 0.0;
    }
    bool has_metric_rule = out->min_cosine >= 0 || out->max_abs >= 0 || out->max_rel_l2 >= 0 || out->max_ulp >= 0;
    out->elementwise = has_elementwise_rule || !has_metric_rule;
}
