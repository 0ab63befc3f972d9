/* Random operators: all draw from one seed, each from a separate offset. */
#include "ge/lower.h"

#define N_OF(table) (sizeof(table) / sizeof((table)[0]))

/* key, counter and algorithm of the stateless generators */
#define STATE                                                                                                          \
    "key = Unsqueeze(Cast(seed(), dst_type=u64), axes=[0]); zero = const(0, i64);"                                     \
    "counter = Cast(ConcatV2([zero, offset()], 0, N=2), dst_type=u64); alg = Cast(1, dst_type=i32);"

#define BERNOULLI(p) "s = Shape(self); StatelessBernoulli(s, " p ", seed(), offset(), dtype=out)"
#define NORMAL STATE "StatelessRandomNormalV2(size, key, counter, alg, dtype=out)"

static const fx_recipe RECIPES[] = {
    {"aten.bernoulli.default", "self, generator=None", BERNOULLI("self"), false},
    {"aten.bernoulli.p", "self, p, generator=None", BERNOULLI("p"), false},
    {"aten.bernoulli.Tensor", "self, p, generator=None", BERNOULLI("p"), false},
    {"aten.multinomial.default", "self, num_samples, replacement=False, generator=None",
     "MultinomialWithReplacement(self, seed(), offset(), numsamples=num_samples)", false},
    {"aten.rand.default", "size, dtype=None, layout=None, device=None, pin_memory=None",
     STATE "StatelessRandomUniformV2(size, key, counter, alg, dtype=out)", false},
    {"aten.randn.default", "size, dtype=None, layout=None, device=None, pin_memory=None", NORMAL, false},
    {"aten.randn.generator", "size, generator, dtype=None, layout=None, device=None, pin_memory=None", NORMAL, false},
    {"aten.randint.default", "high, size, dtype=None, layout=None, device=None, pin_memory=None",
     STATE "u = StatelessRandomUniformV2(size, key, counter, alg, dtype=f32); Cast(Mul(u, high), dst_type=out)", false},
    {"aten.randperm.default", "n, dtype=None, layout=None, device=None, pin_memory=None",
     "StatelessRandperm(n, seed(), offset(), layout=1, dtype=out)", false},
    {"aten.uniform.default", "self, low=0.0, high=1.0, generator=None",
     "size = Shape(self);" STATE "u = StatelessRandomUniformV2(size, key, counter, alg, dtype=out);"
     "if low == 0 and high == 1 { return u }"
     "low = const(low, out); high = const(high, out); a = Sub(Mul(u, low), low); Sub(Mul(u, high), a)",
     false},
};

const fx_recipe_table fx_recipes_random = {RECIPES, N_OF(RECIPES)};
