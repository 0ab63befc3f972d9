/* Indexing, gathering and scattering. */
#include "ge/lower.h"

#define N_OF(table) (sizeof(table) / sizeof((table)[0]))

#define INDEX                                                                                                          \
    "mask = []; list = [];"                                                                                            \
    "for i in indices { if i == None { mask = mask + [0] } else { mask = mask + [1]; list = list + [to(i, i64)] } }"   \
    "IndexByTensor(self, list, indices_mask=mask)"

static const fx_recipe RECIPES[] = {
    {"aten.index.Tensor", "self, indices", INDEX, false},
    {"aten._unsafe_index.Tensor", "self, indices", INDEX, false},
    {"aten.gather.default", "self, dim, index, sparse_grad=False",
     "i = to(index, i64); GatherElements(self, i, dim=dim)", false},
    {"aten.index_select.default", "self, dim, index", "GatherV2(self, index, const(dim, i64))", false},
    {"aten.embedding.default", "weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False",
     "if scale_grad_by_freq { raise('input scale_grad_by_freq only supports False now, but input scale_grad_by_freq ="
     " True') } GatherV2(weight, indices, [0])",
     false},
    {"aten.embedding_dense_backward.default", "grad, indices, num_weights, padding_idx, scale_grad_by_freq",
     "i = scale_grad_by_freq ? Cast(indices, dst_type=i32) : indices;"
     "EmbeddingDenseGrad(grad, i, num_weights=num_weights, padding_idx=padding_idx,"
     " scale_grad_by_freq=scale_grad_by_freq)",
     false},
    {"aten._embedding_bag.default",
     "weight, indices, offsets, scale_grad_by_freq=False, mode=1, sparse=False, per_sample_weights=None,"
     " include_last_offset=False, padding_idx=-1",
     "EmbeddingBag(weight, indices, offsets, per_sample_weights, mode=['sum', 'mean', 'max'][mode],"
     " scale_grad_by_freq=scale_grad_by_freq, sparse=sparse, include_last_offset=include_last_offset,"
     " padding_idx=padding_idx)",
     false},
    {"aten._embedding_bag_forward_only.default",
     "weight, indices, offsets, scale_grad_by_freq=False, mode=1, sparse=False, per_sample_weights=None,"
     " include_last_offset=False, padding_idx=-1",
     "i = to(indices, i32); o = to(offsets, i32);"
     "EmbeddingBag(weight, i, o, per_sample_weights, mode=['sum', 'mean', 'max'][mode],"
     " scale_grad_by_freq=scale_grad_by_freq, sparse=sparse, include_last_offset=include_last_offset,"
     " padding_idx=padding_idx)",
     false},
    {"aten.scatter.src", "self, dim, index, src", "ScatterElements(self, index, src, axis=dim)", false},
    {"aten.scatter.value", "self, dim, index, value",
     "s = Shape(index); ScatterElements(self, index, Fill(s, Cast(value, dst_type=out)), axis=dim)", false},
    {"aten.scatter_add.default", "self, dim, index, src",
     "ScatterElements(self, index, src, axis=dim, reduction='add')", false},
    {"aten.select_scatter.default", "self, src, dim, index",
     "s = Shape(self); i = BroadcastTo(index, s); v = BroadcastTo(ExpandDims(src, dim), s);"
     "ScatterElements(self, i, v, axis=dim)",
     false},
    {"aten.select_backward.default", "grad, input_sizes, dim, index",
     "e = Empty(Cast(input_sizes, dst_type=i32), dtype=out); i = BroadcastTo(index, input_sizes);"
     "v = BroadcastTo(ExpandDims(grad, dim), input_sizes); ScatterElements(e, i, v, axis=dim)",
     false},
    {"aten.slice_scatter.default", "self, src, dim=0, start=None, end=None, step=1",
     "if start == None { start = 0 }"
     "if end == None or (isint(end) and end > 2147483647) { end = 2147483647 }"
     "n = shape(self)[dim];"
     "if start == 0 and end == 2147483647 and step == 1 { return src }"
     "if step == 1 {"
     "  a = StridedSliceV2(self, 0, start, dim, 1); b = StridedSliceV2(self, end, 2147483647, dim, 1);"
     "  return ConcatV2([a, src, b], dim, N=3)"
     "}"
     "s = Cast(Shape(self), dst_type=i32);"
     "first = const(start, i32); stop = const(end, i32); by = const(step, i32); m = Minimum(Gather(s, dim), stop); r = "
     "Range(first, m, by); axes = []; for i in range(rank(self)) { if i != dim { axes = axes + [i] } }"
     "u = Unsqueeze(r, axes=axes); e = Expand(u, Shape(src)); ScatterElements(self, e, src, axis=dim)",
     false},
    {"aten.slice_backward.default", "grad, input_sizes, dim, start, end, step",
     "if step == 1 {"
     "  n = input_sizes[dim]; stop = end > n ? n : end; before = []; after = [];"
     "  for i in range(len(input_sizes)) {"
     "    before = before + [i == dim ? start : input_sizes[i]];"
     "    after = after + [i == dim ? n - stop : input_sizes[i]]"
     "  }"
     "  parts = [];"
     "  if start > 0 { parts = parts + [Fill(before, Cast(0.0, dst_type=out))] }"
     "  parts = parts + [grad];"
     "  if n > stop { parts = parts + [Fill(after, Cast(0.0, dst_type=out))] }"
     "  return ConcatV2(parts, dim, N=len(parts))"
     "}"
     "sizes = const(input_sizes, i32); first = const(start, i32); stop = const(end, i32); by = const(step, i32);"
     "z = Fill(sizes, const(0.0, out)); r = Range(first, stop, by);"
     "axes = []; for i in range(len(input_sizes)) { if i != dim { axes = axes + [i] } }"
     "e = Expand(Unsqueeze(r, axes=axes), Shape(grad)); ScatterElements(z, e, grad, axis=dim)",
     false},
    {"aten.index_add.default", "self, dim, index, source, alpha=1",
     "k = const(alpha, out); s = Shape(index, dtype=i32); t = Shape(self, dtype=i32); i = to(index, i32); sizes = [];"
     "for d in range(rank(self)) { sizes = sizes + [d == dim(dim, rank(self)) ? Gather(s, 0) : Gather(t, d)] }"
     "b = BroadcastTo(source, Pack(sizes, N=len(sizes), axis=0)); m = TensorMove(self);"
     "InplaceIndexAdd(m, i, b, k, axis=dim(dim, rank(self)))",
     false},
    {"aten.as_strided_scatter.default", "self, src, size, stride, storage_offset=0",
     "o = storage_offset == None ? 0 : storage_offset; n = len(size); dense = []; run = 1;"
     "for i in range(n) { dense = [run] + dense; run = run * size[n - 1 - i] }"
     "ViewCopy(self, size, stride, o, src, size, dense, 0)",
     false},
};

const fx_recipe_table fx_recipes_index = {RECIPES, N_OF(RECIPES)};
