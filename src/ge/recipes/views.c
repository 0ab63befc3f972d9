/* Views, copies and changes of dtype. permute, transpose, t and reshape are pending first: lower_views.c. */
#include "ge/lower.h"

#define N_OF(table) (sizeof(table) / sizeof((table)[0]))

static const fx_recipe RECIPES[] = {
    {"aten.permute.default", "self, dims", "Transpose(self, dims)", true},
    {"aten.transpose.int", "self, dim0, dim1", "raise('dimensions of the transposed tensor are unknown')", true},
    {"aten.t.default", "self", "raise('dimensions of the transposed tensor are unknown')", true},
    {"aten.reshape.default", "self, shape", "Reshape(self, const(shape, i64))", true},
    {"aten._unsafe_view.default", "self, size", "Reshape(self, const(size, i64))", true},
    {"aten.unsqueeze.default", "self, dim", "Unsqueeze(self, axes=[dim])", true},
    {"aten.squeeze.default", "self",
     "axes = []; s = shape(self); for i in range(rank(self)) { if s[i] == 1 { axes = axes + [i] } }"
     "axes ? Squeeze(self, axis=axes) : Identity(self)",
     true},
    {"aten.squeeze.dim", "self, dim", "s = shape(self); s[dim] == 1 ? Squeeze(self, axis=[dim]) : Identity(self)",
     true},
    {"aten.expand.default", "self, size, implicit=False", "unchanged(self) ? self : BroadcastTo(self, size)", true},
    {"aten.slice.Tensor", "self, dim=0, start=None, end=None, step=1",
     "if start == None { start = 0 } if end == None { end = 2147483647 }"
     "if isint(end) and end > 2147483647 { end = 2147483647 }"
     "if start == 0 and end == 2147483647 and step == 1 { return self }"
     "c = const(dim, i64); a = const(start, i64); b = const(end, i64); d = const(step, i64);"
     "StridedSliceV2(self, a, b, c, d)",
     true},
    {"aten.select.int", "self, dim, index", "GatherV2(self, index, [dim], negative_index_support=True)", true},
    {"aten.as_strided.default", "self, size, stride, storage_offset=0",
     "if len(outshape(0)) == 0 { raise('list index out of range') }"
     "AsStrided(self, size, stride, storage_offset == None ? 0 : storage_offset)",
     true},
    {"aten.split.Tensor", "self, split_size, dim=0",
     "n = n_outs(); sizes = []; for i in range(n - 1) { sizes = sizes + [split_size] } sizes = sizes + [-1];"
     "d = const(dim, i32); SplitV(self, Cast(Pack(sizes, N=n), dst_type=i64), d, num_split=n)",
     true},
    {"aten.split_with_sizes.default", "self, split_sizes, dim=0",
     "SplitV(self, const(split_sizes, i64), const(dim, i32), num_split=n_outs())", true},
    {"aten.unbind.int", "self, dim=0", "Unpack(self, num=n_outs(), axis=dim)", true},
    {"aten.detach.default", "self", "Identity(self)", true},
    {"aten.alias.default", "self", "Identity(self)", true},
    {"aten.view_as_real.default", "self", "Pack([Real(self), Imag(self)], N=2, axis=-1)", true},
    {"aten.view_as_complex.default", "self",
     "x = dtype(self) == f16 ? Cast(self, dst_type=f32) : self;"
     "Complex(GatherV2(x, 0, [-1], negative_index_support=True), GatherV2(x, 1, [-1], negative_index_support=True))",
     true},
    {"aten.lift_fresh_copy.default", "self", "Identity(self)", false},
    {"aten.clone.default", "self, memory_format='torch.contiguous_format'",
     "if memory_format in [None, 'torch.contiguous_format', 'torch.preserve_format'] { return Identity(self) }"
     "raise('memory_format = ', memory_format, ' is not supported')",
     false},
    {"aten._to_copy.default",
     "self, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None",
     "if not (memory_format in [None, 'torch.contiguous_format']) {"
     "  raise('input memory_format only supports torch.contiguous_format now, but input memory_format = ', "
     "memory_format)"
     "}"
     "dtype == None or dtype == dtype(self) ? TensorMove(self) : Cast(self, dst_type=dtype)",
     false},
    {"aten.copy.default", "self, src, non_blocking=False",
     "x = to(src, out); if dtype(self) == dtype(src) and sameshape(self, src) { return src }"
     "BroadcastTo(x, Shape(self))",
     false},
    {"aten.copy_.default", "self, src, non_blocking=False", "Assign(self, src)", true},
    {"aten.repeat.default", "self, repeats", "Tile(self, repeats)", false},
    {"aten.flip.default", "self, dims", "ReverseV2(self, dims)", false},
    {"aten.tril.default", "self, diagonal=0", "Tril(self, diagonal=diagonal)", false},
    {"aten.triu.default", "self, diagonal=0", "Triu(self, diagonal=diagonal)", false},
    {"aten.cat.default", "tensors, dim=0",
     "xs = []; for x in tensors { xs = xs + [to(x, out)] } ConcatV2(xs, dim, N=len(xs))", false},
    {"aten.stack.default", "tensors, dim=0",
     "xs = []; for x in tensors { xs = xs + [to(x, out)] } Pack(xs, N=len(xs), axis=dim)", false},
    {"aten.constant_pad_nd.default", "self, pad, value=0",
     "if not islist(pad) { raise('When pad is Tensor, torch.ops.aten.constant_pad_nd.default ge_converter is not"
     " implemented!') }"
     "n = rank(self); half = len(pad) / 2; pads = [0] * (2 * (n - half));"
     "for i in range(half) { j = half - 1 - i; pads = pads + [pad[2 * j], pad[2 * j + 1]] }"
     "PadV3(self, pads, value)",
     false},
};

const fx_recipe_table fx_recipes_views = {RECIPES, N_OF(RECIPES)};
