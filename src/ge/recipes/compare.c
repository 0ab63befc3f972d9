/* Comparisons and logic. The promotion of mixed dtypes depends on the operator. */
#include "ge/lower.h"

#define N_OF(table) (sizeof(table) / sizeof((table)[0]))

/* A number is promoted as in torch: an int tensor and 2.5 compare as floats. */
#define SCALAR_AS_TORCH(target, ge)                                                                                    \
    {                                                                                                                  \
        "aten." target ".Scalar", "self, other", "d = common(self, other); " ge "(to(self, d), const(other, d))",      \
            false                                                                                                      \
    }
#define TENSOR_AS_TORCH(target, ge)                                                                                    \
    {                                                                                                                  \
        "aten." target ".Tensor", "self, other",                                                                       \
            "d = common(self, other); if d == bool { d = f32 } x = to(self, d); y = to(other, d); " ge "(x, y)", false \
    }
#define LOGICAL(aten, ge)                                                                                              \
    {                                                                                                                  \
        "aten." aten ".default", "self, other", "x = to(self, bool); y = to(other, bool); " ge "(x, y)", false         \
    }

static const fx_recipe RECIPES[] = {
    SCALAR_AS_TORCH("eq", "Equal"),
    SCALAR_AS_TORCH("ne", "NotEqual"),
    SCALAR_AS_TORCH("gt", "Greater"),
    {"aten.ge.Scalar", "self, other", "GreaterEqual(self, const(other, dtype(self)))", false},
    {"aten.lt.Scalar", "self, other", "Less(self, Cast(other, dst_type=dtype(self)))", false},
    {"aten.le.Scalar", "self, other",
     "d = promote(dtype(self), dtype(other));"
     "if dtype(self) == dtype(other) { return LessEqual(self, other) }"
     "LessEqual(to(self, d), const(other, d))",
     false},
    {"aten.eq.Tensor", "self, other",
     "if dtype(self) != dtype(other) { raise('Inputs data type mismatch') } Equal(self, other)", false},
    {"aten.ne.Tensor", "self, other", "d = common(self, other); x = to(self, d); y = to(other, d); NotEqual(x, y)",
     false},
    TENSOR_AS_TORCH("gt", "Greater"),
    TENSOR_AS_TORCH("ge", "GreaterEqual"),
    TENSOR_AS_TORCH("le", "LessEqual"),
    {"aten.lt.Tensor", "self, other", "Less(self, other)", false},
    {"aten.less.Tensor", "self, other", "Less(self, other)", false},
    LOGICAL("logical_and", "LogicalAnd"),
    LOGICAL("logical_or", "LogicalOr"),
    {"aten.logical_not.default", "self", "LogicalNot(to(self, bool))", false},
    {"aten.bitwise_and.Tensor", "self, other",
     "out == bool ? LogicalAnd(self, other) : BitwiseAnd(to(self, out), to(other, out))", false},
    {"aten.bitwise_or.Tensor", "self, other",
     "out == bool ? LogicalOr(self, other) : BitwiseOr(to(self, out), to(other, out))", false},
    {"aten.bitwise_not.default", "self", "out == bool ? LogicalNot(self) : Invert(self)", false},
    {"aten.bitwise_right_shift_.Tensor", "self, other", "RightShift(self, other)", false},
    {"prims.lt.default", "self, other", "Less(self, other)", false},
    {"prims.le.default", "self, other", "LessEqual(self, other)", false},
};

const fx_recipe_table fx_recipes_compare = {RECIPES, N_OF(RECIPES)};
