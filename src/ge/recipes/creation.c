/* Tensors made from sizes and numbers. */
#include "ge/lower.h"

#define N_OF(table) (sizeof(table) / sizeof((table)[0]))

#define FACTORY "dtype=None, layout=None, device=None, pin_memory=None"

static const fx_recipe RECIPES[] = {
    {"aten.full.default", "size, fill_value, " FACTORY,
     "if islist(size) and len(size) == 0 { return to(fill_value, out) } Fill(size, const(fill_value, out))", false},
    {"aten.full_like.default", "self, fill_value, " FACTORY ", memory_format=None",
     "s = Shape(self); if dtype != None { x = to(self, dtype) } v = Cast(fill_value, dst_type=out); Fill(s, v)", false},
    {"aten.new_full.default", "self, size, fill_value, " FACTORY, "Fill(size, const(fill_value, out))", false},
    {"aten.new_ones.default", "self, size, " FACTORY, "Fill(size, Cast(1.0, dst_type=out))", false},
    {"aten.new_zeros.default", "self, size, " FACTORY, "Fill(size, Cast(0.0, dst_type=out))", false},
    {"aten.new_empty.default", "self, size, " FACTORY, "Empty(to(size, i32), dtype=out)", false},
    {"aten.new_empty_strided.default", "self, size, stride, " FACTORY,
     "c = to(size, i32); AsStrided(Empty(c, dtype=out), c, stride, 0)", false},
    {"aten.empty.memory_format", "size, " FACTORY ", memory_format=None",
     "if not (memory_format in [None, 'torch.contiguous_format']) {"
     "  raise('torch.ops.aten.empty.memory_format is only supported contiguous_format now.')"
     "}"
     "Fill(size, Cast(0.0, dst_type=out))",
     false},
    {"aten.empty_like.default", "self, " FACTORY ", memory_format=None",
     "s = Shape(self); Fill(s, Cast(0.0, dst_type=out))", false},
    {"aten.ones.default", "size, " FACTORY, "Fill(size, const(1, out))", false},
    {"aten.zeros.default", "size, " FACTORY, "dtype == None ? Fill(size, 0.0) : Fill(size, Cast(0.0, dst_type=dtype))",
     false},
    {"aten.ones_like.default", "self, " FACTORY ", memory_format=None", "OnesLike(to(self, out))", false},
    {"aten.zeros_like.default", "self, " FACTORY ", memory_format=None", "ZerosLike(to(self, out))", false},
    {"aten.zero.default", "self", "ZerosLike(self)", false},
    {"aten.fill.Scalar", "self, value", "s = Shape(self); Fill(s, Cast(value, dst_type=out))", false},
    {"aten.fill.Tensor", "self, value", "s = Shape(self); Fill(s, Cast(value, dst_type=out))", false},
    {"aten.scalar_tensor.default", "value, " FACTORY, "issym(value) ? value : to(value, out)", false},
    {"aten.arange.default", "end, " FACTORY,
     "a = const(0, i32); b = const(1, i32); Cast(Range(a, end, b), dst_type=out)", false},
    {"aten.arange.start", "start, end, " FACTORY, "Cast(Range(start, end, const(1, i32)), dst_type=out)", false},
    {"aten.arange.start_step", "start, end, step=1, " FACTORY,
     "a = const(start, out); b = const(end, out); c = const(step, out); Cast(Range(a, b, c), dst_type=out)", false},
    {"aten.linspace.default", "start, end, steps, " FACTORY,
     "l = LinSpace(start, end, steps); out == f32 ? l : Cast(l, dst_type=out)", false},
};

const fx_recipe_table fx_recipes_creation = {RECIPES, N_OF(RECIPES)};
