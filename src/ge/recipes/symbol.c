/* Arithmetic on symbolic numbers: sizes are int64, other numbers float32. */
#include "ge/lower.h"

#define N_OF(table) (sizeof(table) / sizeof((table)[0]))

#define BINARY(name, ge)                                                                                               \
    {                                                                                                                  \
        "operator." name, "a, b", "x = to(a, out); y = to(b, out); " ge "(x, y)", false                                \
    }

static const fx_recipe RECIPES[] = {
    {"aten.sym_size", "self, dim", "unknown(Gather(Shape(self, dtype=i64), dim))", false},
    {"aten.sym_size.int", "self, dim", "unknown(Gather(Shape(self, dtype=i64), dim))", false},
    BINARY("add", "Add"),
    BINARY("sub", "Sub"),
    BINARY("mul", "Mul"),
    BINARY("floordiv", "FloorDiv"),
    BINARY("mod", "Mod"),
    BINARY("pow", "Pow"),
    {"operator.neg", "a", "Neg(a)", false},
    {"operator.truediv", "a, b", "x = to(a, f32); y = to(b, f32); Div(x, y)", false},
    {"math.floor", "a", "Cast(Floor(a), dst_type=i64)", false},
    {"math.ceil", "a", "Cast(Ceil(a), dst_type=i64)", false},
    {"torch.sym_float", "a", "Cast(a, dst_type=out)", false},
};

const fx_recipe_table fx_recipes_symbol = {RECIPES, N_OF(RECIPES)};
