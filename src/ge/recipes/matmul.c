/* Matrix products. */
#include "ge/lower.h"

#define N_OF(table) (sizeof(table) / sizeof((table)[0]))

static const fx_recipe RECIPES[] = {
    {"aten.mm.default", "self, mat2", "MatMul(self, mat2, None)", false},
    {"aten.bmm.default", "self, mat2", "BatchMatMul(self, mat2)", false},
    {"aten.matmul.default", "self, other",
     "rank(self) > 2 or rank(other) > 2 ? BatchMatMul(self, other) : MatMul(self, other, None)", false},
    {"aten.addmm.default", "self, mat1, mat2, beta=1, alpha=1",
     "a = const(alpha, out); b = const(beta, out);"
     "if out in [f16, bf16] and rank(self) == 1 {"
     "  if alpha != 1 { mat1 = Mul(mat1, a) }"
     "  if beta != 1 { self = Mul(self, b) }"
     "  return MatMulV2(mat1, mat2, self, None)"
     "}"
     "m = Mul(typed(MatMulV2(mat1, mat2, None, None), out), a);"
     "if beta == 0 { return m }"
     "beta == 1 ? Add(m, self) : AxpyV2(m, self, b)",
     false},
    {"aten.baddbmm.default", "self, batch1, batch2, beta=1, alpha=1",
     "m = Mul(BatchMatMul(batch1, batch2), alpha); s = Mul(self, beta); x = to(m, out); y = to(s, out); Add(x, y)",
     false},
    {"aten.matmul_backward.default", "grad, self, other, mask",
     "a = None; b = None; p = const([1, 0], i64); q = const([1, 0], i64);"
     "if mask[0] { a = BatchMatMul(grad, Transpose(other, q)) }"
     "if mask[1] { b = BatchMatMul(Transpose(self, p), grad) }"
     "[a, b]",
     false},
};

const fx_recipe_table fx_recipes_matmul = {RECIPES, N_OF(RECIPES)};
