/* Reductions, sorting and searching along dimensions. */
#include "ge/lower.h"

#define N_OF(table) (sizeof(table) / sizeof((table)[0]))

#define ARG(aten, by_axis, with_value)                                                                                 \
    {                                                                                                                  \
        "aten." aten ".default", "self, dim=None, keepdim=False",                                                      \
            "if dim == None { return " by_axis "(Reshape(self, const((-1,), i64)), 0) }"                               \
            "if not keepdim { return " by_axis "(self, const(dim, i64)) }"                                             \
            "index, value = " with_value "(to(self, f32), dimension=dim, keep_dims=True); Cast(index, dst_type=i64)",  \
            false                                                                                                      \
    }

static const fx_recipe RECIPES[] = {
    {"aten.sum.default", "self, dtype=None", "x = Cast(self, dst_type=out); ReduceSum(x, range(rank(self)))", false},
    {"aten.sum.dim_IntList", "self, dim=None, keepdim=False, dtype=None",
     "x = to(self, out); axes = dim ? dim : range(rank(self)); ReduceSum(x, axes, keep_dims=keepdim)", false},
    {"aten.mean.default", "self, dtype=None", "x = to(self, out); ReduceMean(x, range(rank(self)))", false},
    {"aten.mean.dim", "self, dim, keepdim=False, dtype=None",
     "axes = dim ? dim : range(rank(self));"
     "if dtype == None { return ReduceMean(self, axes, keep_dims=keepdim) }"
     "ReduceMeanWithCast(self, axes, keep_dims=keepdim, dtype=dtype)",
     false},
    {"aten.all.default", "self", "x = to(self, bool); ReduceAll(x, range(rank(self)))", false},
    {"aten.any.default", "self",
     "x = to(self, bool); axes = range(rank(self));"
     "if rank(self) == 0 { x = Unsqueeze(x, axes=[0]); axes = [0] } ReduceAny(x, axes, keep_dims=False)",
     false},
    {"aten.any.dim", "self, dim, keepdim=False", "x = to(self, bool); ReduceAny(x, [dim], keep_dims=keepdim)", false},
    {"aten.max.default", "self", "ReduceMax(self, const(range(rank(self)), i64))", false},
    {"aten.max.dim", "self, dim, keepdim=False",
     "index, value = ArgMaxWithValue(self, dimension=dim, keep_dims=keepdim); [value, Cast(index, dst_type=i64)]",
     false},
    ARG("argmax", "ArgMaxV2", "ArgMaxWithValue"),
    ARG("argmin", "ArgMin", "ArgMinWithValue"),
    {"aten.cumsum.default", "self, dim, dtype=None", "x = to(self, out); Cumsum(x, dim)", false},
    {"aten.logsumexp.default", "self, dim, keepdim=False",
     "x = to(self, out); d = const(dim, i64);"
     "m = ReduceMax(x, d, keep_dims=True);"
     "a = Abs(m);"
     "e = Equal(a, const(inf, out));"
     "m = MaskedFill(m, e, 0.0);"
     "s = m;"
     "if not keepdim { axes = []; for a in dim { axes = axes + [dim(a, rank(self))] } s = Squeeze(m, axis=axes) }"
     "l = ReduceLogSumExp(Sub(x, m), d, keep_dims=keepdim); Add(l, s)",
     false},
    {"aten.std.correction", "self, dim=None, correction=1, keepdim=False",
     "axes = dim ? dim : [];"
     "if correction == None { correction = 1 }"
     "if not dynamic(self) {"
     "  s = Shape(self); n = rank(self); all = []; for d in axes { all = all + [dim(d, n)] }"
     "  sizes = []; kept = [];"
     "  for d in range(n) { sizes = sizes + [Gather(s, d)] }"
     "  if keepdim { for d in range(n) { kept = kept + [d in all ? 1 : sizes[d]] } }"
     "  else { for d in range(n) { if not (d in all) { kept = kept + [sizes[d]] } } }"
     "  p = kept ? Pack(kept, N=len(kept), axis=0) : None;"
     "  if numel(self) == 0 { return Fill(p, Cast(nan, dst_type=out)) }"
     "}"
     "m = ReduceMean(self, axes, keep_dims=keepdim);"
     "if not keepdim and len(axes) < rank(self) { for d in axes { m = Unsqueeze(m, axes=[d]) } }"
     "e = Expand(m, Shape(self));"
     "ReduceStdWithMean(self, e, dim=axes, keepdim=keepdim, correction=correction)",
     false},
    {"aten.linalg_vector_norm.default", "self, ord=2, dim=None, keepdim=False, dtype=None",
     "if ord == inf { ord = 2147483647 } if ord == -inf { ord = -2147483648 }"
     "n = LpNormV2(self, p=ord, axes=dim == None ? [] : dim, keepdim=keepdim, epsilon=0.0); Cast(n, dst_type=out)",
     false},
    {"aten.topk.default", "self, k, dim=-1, largest=True, sorted=True",
     "v, i = TopKV2(self, k, sorted=sorted, dim=dim, largest=largest); [v, Cast(i, dst_type=i64)]", false},
    {"aten.sort.default", "self, dim=-1, descending=False",
     "n = rank(self); d = dim(dim, n); last = n == 0 ? 0 : n - 1;"
     "if d == last { v, i = Sort(self, axis=d, descending=descending); return [v, Cast(i, dst_type=i64)] }"
     "order = []; for j in range(n) { order = order + [j == d ? last : (j == last ? d : j)] }"
     "p = const(order, i64); v, i = Sort(Transpose(self, p), axis=last, descending=descending);"
     "v = Transpose(v, p); i = Transpose(i, p); [v, Cast(i, dst_type=i64)]",
     false},
    {"aten.searchsorted.Tensor", "sorted_sequence, self, out_int32=False, right=False, side=None, sorter=None",
     "SearchSorted(sorted_sequence, self, sorter, dtype=out_int32 ? i32 : i64, right=right or side == 'right')", false},
};

const fx_recipe_table fx_recipes_reduce = {RECIPES, N_OF(RECIPES)};
