/* Normalisation, softmax and dropout. */
#include "ge/lower.h"

#define N_OF(table) (sizeof(table) / sizeof((table)[0]))

/* A statistic with one number per channel, broadcast to the tensor's shape `s` of rank n. */
#define SPREAD(x) "BroadcastTo(Unsqueeze(Unsqueeze(" x ", axes=[0]), axes=rest), s)"

static const fx_recipe RECIPES[] = {
    {"aten._softmax.default", "self, dim, half_to_float", "SoftmaxV2(self, axes=[dim], half_to_float=half_to_float)",
     false},
    {"aten._safe_softmax.default", "self, dim, dtype=None", "SoftmaxV2(to(self, out), axes=[dim], half_to_float=False)",
     false},
    {"aten._log_softmax.default", "self, dim, half_to_float",
     "LogSoftmaxV2(half_to_float ? to(self, out) : self, axes=[dim])", false},
    {"aten._softmax_backward_data.default", "grad, output, dim, dtype", "SoftmaxGrad(output, grad, axes=[dim])", false},
    {"aten._log_softmax_backward_data.default", "grad, output, dim, dtype", "LogSoftmaxGrad(grad, output, axis=[dim])",
     false},
    {"aten.native_layer_norm.default", "input, normalized_shape, weight, bias, eps",
     "if weight == None {"
     "  c = to(normalized_shape, i32); weight = Fill(islist(normalized_shape) ? c : normalized_shape, const(1.0, out))"
     "}"
     "if bias == None {"
     "  c = to(normalized_shape, i32); bias = Fill(islist(normalized_shape) ? c : normalized_shape, const(0.0, out))"
     "}"
     "LayerNormV4(input, normalized_shape, weight, bias, epsilon=eps)",
     false},
    {"aten.native_layer_norm_backward.default", "grad, input, normalized_shape, mean, rstd, weight, bias, mask",
     "LayerNormGradV3(grad, input, rstd, mean, weight)", false},
    {"aten.native_group_norm.default", "input, weight, bias, n, c, hw, group, eps",
     "if weight == None { weight = Fill([c], const(1, out)) }"
     "if bias == None { bias = Fill([c], const(0, out)) }"
     "y, mean, var = GroupNorm(input, weight, bias, num_groups=group, eps=eps, is_training=True);"
     "[y, mean, Rsqrt(Add(var, const(eps, out)))]",
     false},
    {"aten.native_group_norm_backward.default", "grad, input, mean, rstd, weight, n, c, hw, group, mask",
     "w = Reshape(weight, Pack([1, c, 1], N=3, axis=0)); m = Mul(grad, w); ng = Mul(n, group);"
     "p1 = Pack([1, ng, -1], N=3, axis=0); p2 = Pack([ng], N=1, axis=0);"
     "x = Reshape(input, p1); g = Reshape(m, p1); u = Reshape(mean, p2);"
     "v = Reshape(Sub(Reciprocal(Mul(rstd, rstd)), 1e-05), p2); one = Fill(p2, const(1, out));"
     "x = Unsqueeze(x, axes=[3]); g = Unsqueeze(g, axes=[3]);"
     "a, b = BNTrainingUpdateGrad(g, x, u, v, epsilon=1e-05);"
     "r = BNTrainingReduceGrad(g, x, a, b, one, u, v, epsilon=1e-05);"
     "s = Squeeze(r, axis=[3]); dx = Reshape(s, Shape(input));"
     "um = Unsqueeze(mean, axes=[2]); ur = Unsqueeze(rstd, axes=[2]);"
     "p3 = Pack([n, group, RealDiv(c, group)], N=3); p4 = Pack([n, c, 1], N=3, axis=0);"
     "bm = Reshape(BroadcastTo(um, p3), p4); br = Reshape(BroadcastTo(ur, p3), p4);"
     "t = Mul(grad, Mul(Sub(input, bm), br)); axes = [0] + range(2, rank(input));"
     "[dx, ReduceSum(t, axes, keep_dims=False), ReduceSum(grad, axes, keep_dims=False)]",
     false},
    {"aten._native_batch_norm_legit.default", "", NULL, false}, /* registered, and raises */
    {"aten._native_batch_norm_legit.no_stats", "", NULL, false},
    {"aten._native_batch_norm_legit_functional.default",
     "input, weight, bias, running_mean, running_var, training, momentum, eps",
     "if not training { raise('torch.ops.aten._native_batch_norm_legit_functional.default ge_converter is not"
     " implemented while training is False!') }"
     "s = Shape(input, dtype=i32);"
     "if weight == None { weight = Fill(Gather(s, 1), Cast(1.0, dst_type=out)) }"
     "if bias == None { bias = Fill(Gather(s, 1), Cast(0.0, dst_type=out)) }"
     "m = TensorMove(running_mean); v = TensorMove(running_var); axes = range(rank(input), 4); back = [];"
     "for a in axes { back = [a] + back }"
     "x = axes ? Unsqueeze(input, axes=axes) : input;"
     "y, a, b, c, d = BatchNormV3(x, weight, bias, m, v, epsilon=eps, momentum=momentum, is_training=True);"
     "[axes ? Squeeze(y, axis=back) : y, a, b, c, d]",
     false},
    {"aten._native_batch_norm_legit_no_training.default",
     "input, weight, bias, running_mean, running_var, momentum, eps",
     "s = Shape(input, dtype=i32);"
     "if weight == None { weight = Fill(Gather(s, 1), Cast(1.0, dst_type=out)) }"
     "if bias == None { bias = Fill(Gather(s, 1), Cast(0.0, dst_type=out)) }"
     "e = Fill([0], Cast(0.0, dst_type=out));"
     "axes = range(rank(input), 4); back = []; for a in axes { back = [a] + back }"
     "if axes {"
     "  y = BNInfer(Unsqueeze(input, axes=axes), weight, bias, running_mean, running_var, epsilon=eps);"
     "  return [Squeeze(y, axis=back), e, e]"
     "}"
     "[BNInfer(input, weight, bias, running_mean, running_var, epsilon=eps), e, e]",
     false},
    {"aten.native_batch_norm_backward.default",
     "grad, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, mask",
     "s = Shape(input, dtype=i32);"
     "if train {"
     "  a, b = BNTrainingUpdateGrad(grad, input, save_mean, save_invstd, epsilon=eps);"
     "  return [BNTrainingReduceGrad(grad, input, a, b, weight, save_mean, save_invstd, epsilon=eps), a, b]"
     "}"
     "a, b = BNTrainingUpdateGrad(grad, input, running_mean, running_var, epsilon=eps);"
     "[BNInferGrad(grad, weight, running_var, epsilon=eps), a, b]",
     false},
    {"aten.batch_norm_elemt.default", "input, weight, bias, mean, invstd, eps",
     "if weight == None or bias == None { raise('Input 1 can not be None as it is not optional') }"
     "v = Sub(Div(1.0, Mul(invstd, invstd)), eps); BNInfer(input, weight, bias, mean, v, epsilon=eps)",
     false},
    {"aten.batch_norm_backward_reduce.default", "grad, input, mean, invstd, weight, input_g, weight_g, bias_g",
     "axes = [0] + range(2, rank(input)); m = Mul(grad, input); x = ReduceSum(m, axes, keep_dims=False);"
     "d = ReduceSum(grad, axes, keep_dims=False); mu, w = SyncBatchNormBackwardReduce(d, x, mean, invstd);"
     "[d, mu, w, d]",
     false},
    {"aten.batch_norm_backward_elemt.default", "grad, input, mean, invstd, weight, sum_dy, sum_dy_xmu, count",
     "n = ReduceSum(count, [0], keep_dims=False); a = RealDiv(sum_dy, n); b = RealDiv(sum_dy_xmu, n); s = Shape(input);"
     "rest = range(2, rank(input));"
     "mean = " SPREAD("mean") "; invstd = " SPREAD("invstd") "; weight = " SPREAD(
         "weight") ";"
                   "a = " SPREAD("a") "; b = " SPREAD(
                       "b") ";"
                            "SyncBatchNormBackwardElemt(grad, input, mean, invstd, weight, a, b)",
     false},
    {"aten.native_dropout.default", "input, p, train",
     "if not train { s = Shape(input); return [alias(input), Fill(s, Cast(1.0, dst_type=bool))] }"
     "k = 1.0 - p; keep = const(k, out); s = Shape(input); c = seed(); zero = const(0, i64);"
     "first = const(0, i64); o = ConcatV2([first, offset()], 0, N=2);"
     "m = StatelessDropOutGenMask(s, keep, c, zero, o); [DropOutDoMask(input, m, keep), m]",
     false},
    {"aten.native_dropout_backward.default", "grad, mask, scale",
     "if scale == 0 { raise('float division by zero') } DropOutDoMask(grad, mask, 1.0 / scale)", false},
};

const fx_recipe_table fx_recipes_norm = {RECIPES, N_OF(RECIPES)};
