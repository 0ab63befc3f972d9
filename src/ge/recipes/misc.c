/* Other operators. */
#include "ge/lower.h"

#define N_OF(table) (sizeof(table) / sizeof((table)[0]))

/* A complex Transpose: packs real and imaginary part, permutes, and splits them again. */
#define COMPLEX_PERMUTE(x)                                                                                             \
    "re = Real(" x "); im = Imag(" x "); p = Permute(Pack([re, im], N=2, axis=-1), order=order);"                      \
    "a, b = SplitV(p, [1, -1], -1, num_split=2); a = Squeeze(a, axis=[-1]); b = Squeeze(b, axis=[-1]);"                \
    "a = Cast(a, dst_type=f32); b = Cast(b, dst_type=f32); z = Complex(a, b);"

static const fx_recipe RECIPES[] = {
    {"aten._fft_c2c.default", "self, dims, normalization, forward",
     "n = rank(self); last = []; for d in dims { last = last + [dim(d, n)] }"
     "order = []; for d in range(n) { if not (d in last) { order = order + [d] } } order = order + last;"
     "back = []; for d in range(n) { for j in range(n) { if order[j] == d { back = back + [j] } } }" COMPLEX_PERMUTE(
         "self") "f = len(dims) == 1 ? FFT(z) : FFT2D(z); s = Shape(f); m = None;"
                 "for i in range(len(dims)) { g = Gather(s, n - 1 - i); m = i == 0 ? Mul(g, 1) : Mul(g, m) }"
                 "c = Cast(m, dst_type=out); if normalization == 2 { f = RealDiv(f, c) } order = back;" COMPLEX_PERMUTE(
                     "f") "z",
     false},
};

const fx_recipe_table fx_recipes_misc = {RECIPES, N_OF(RECIPES)};
