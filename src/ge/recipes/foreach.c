/* The operators over lists of tensors. */
#include "ge/lower.h"

#define N_OF(table) (sizeof(table) / sizeof((table)[0]))

#define UNARY(aten, ge)                                                                                                \
    {                                                                                                                  \
        "aten._foreach_" aten ".default", "self", ge "(self)", false                                                   \
    }
#define LIST(aten, ge)                                                                                                 \
    {                                                                                                                  \
        "aten._foreach_" aten ".List", "self, other", ge "(self, other)", false                                        \
    }
#define LIST_ALPHA(aten, ge)                                                                                           \
    {                                                                                                                  \
        "aten._foreach_" aten ".List", "self, other, alpha=1", ge "(self, other, const(alpha, dtype(self[0])))", false \
    }
#define SCALAR(aten, ge)                                                                                               \
    {                                                                                                                  \
        "aten._foreach_" aten ".Scalar", "self, scalar", ge "(self, const(scalar, dtype(self[0])))", false             \
    }
#define SCALARS(aten, ge)                                                                                              \
    {                                                                                                                  \
        "aten._foreach_" aten ".ScalarList", "self, scalars",                                                          \
            ge "(self, isint(scalars[0]) ? const(scalars, i64) : scalars)", false                                      \
    }
#define SCALARS_RAW(aten, ge)                                                                                          \
    {                                                                                                                  \
        "aten._foreach_" aten ".ScalarList", "self, scalars", ge "(self, scalars)", false                              \
    }
/* The modes of one rounding operator: 2 floor, 3 ceil, 4 round, 5 trunc, 7 frac. */
#define ROUNDING(aten, mode)                                                                                           \
    {                                                                                                                  \
        "aten._foreach_" aten ".default", "self", "ForeachRoundOffNumber(self, Fill(1, Cast(" mode ", dst_type=i8)))", \
            false                                                                                                      \
    }
#define ADDC(aten, ge)                                                                                                 \
    {"aten._foreach_" aten ".Scalar", "self, tensor1, tensor2, value=1",                                               \
     ge "Scalar(self, tensor1, tensor2, const(value, dtype(self[0])))", false},                                        \
    {                                                                                                                  \
        "aten._foreach_" aten ".ScalarList", "self, tensor1, tensor2, scalars",                                        \
            ge "ScalarList(self, tensor1, tensor2, scalars)", false                                                    \
    }

static const fx_recipe RECIPES[] = {
    UNARY("abs", "ForeachAbs"),
    UNARY("acos", "ForeachAcos"),
    UNARY("asin", "ForeachAsin"),
    UNARY("atan", "ForeachAtan"),
    UNARY("cos", "ForeachCos"),
    UNARY("cosh", "ForeachCosh"),
    UNARY("erf", "ForeachErf"),
    UNARY("erfc", "ForeachErfc"),
    UNARY("exp", "ForeachExp"),
    UNARY("expm1", "ForeachExpm1"),
    UNARY("log", "ForeachLog"),
    UNARY("log10", "ForeachLog10"),
    UNARY("log1p", "ForeachLog1p"),
    UNARY("log2", "ForeachLog2"),
    UNARY("sigmoid", "ForeachSigmoid"),
    UNARY("sin", "ForeachSin"),
    UNARY("sinh", "ForeachSinh"),
    UNARY("tan", "ForeachTan"),
    UNARY("tanh", "ForeachTanh"),
    ROUNDING("floor", "2"),
    ROUNDING("ceil", "3"),
    ROUNDING("round", "4"),
    ROUNDING("trunc", "5"),
    ROUNDING("frac", "7"),
    LIST_ALPHA("add", "ForeachAddList"),
    LIST_ALPHA("sub", "ForeachSubList"),
    LIST("mul", "ForeachMulList"),
    LIST("div", "ForeachDivList"),
    LIST("pow", "ForeachPowList"),
    LIST("maximum", "ForeachMaximumList"),
    LIST("minimum", "ForeachMinimumList"),
    SCALAR("add", "ForeachAddScalar"),
    SCALAR("sub", "ForeachSubScalar"),
    SCALAR("mul", "ForeachMulScalar"),
    SCALAR("div", "ForeachDivScalar"),
    SCALAR("pow", "ForeachPowScalar"),
    SCALAR("maximum", "ForeachMaximumScalar"),
    SCALAR("minimum", "ForeachMinimumScalar"),
    SCALARS("add", "ForeachAddScalarList"),
    SCALARS("sub", "ForeachSubScalarList"),
    SCALARS("mul", "ForeachMulScalarList"),
    SCALARS_RAW("div", "ForeachDivScalarList"),
    SCALARS_RAW("pow", "ForeachPowScalarList"),
    SCALARS("maximum", "ForeachMaximumScalarList"),
    SCALARS("minimum", "ForeachMinimumScalarList"),
    ADDC("addcmul", "ForeachAddcmul"),
    ADDC("addcdiv", "ForeachAddcdiv"),
    {"aten._foreach_lerp.List", "self, end, weights", "ForeachLerpList(self, end, weights)", false},
    {"aten._foreach_lerp.Scalar", "self, end, weight", "ForeachLerpScalar(self, end, weight)", false},
    {"aten._foreach_norm.Scalar", "self, ord=2, dtype=None", "ForeachNorm(self, ord)", false},
    {"aten._foreach_pow.ScalarAndTensor", "self, exponent",
     "dtype(exponent[0]) == f32 ? ForeachPowScalarAndTensor(self, exponent)"
     " : ForeachPowScalarAndTensor(Fill([1], Cast(self, dst_type=f32)), exponent)",
     false},
};

const fx_recipe_table fx_recipes_foreach = {RECIPES, N_OF(RECIPES)};
