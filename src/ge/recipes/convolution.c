/* Convolutions. One dimension is lowered as two, the first of size 1. */
#include "ge/lower.h"

#define N_OF(table) (sizeof(table) / sizeof((table)[0]))

/* The lists of a convolution over n dimensions, in GE's form: strides, dilations of rank n + 2, pads twice each. */
#define LISTS                                                                                                          \
    "n = rank(weight) - 2; one = n == 1 ? [1] : []; zero = n == 1 ? [0] : [];"                                         \
    "if len(stride) == 1 { stride = stride * n } if len(padding) == 1 { padding = padding * n }"                       \
    "if len(dilation) == 1 { dilation = dilation * n } if len(output_padding) == 1 { output_padding = output_padding " \
    "* n }"                                                                                                            \
    "stride = one + stride; dilation = one + dilation; padding = zero + padding; output_padding = zero + "             \
    "output_padding;"                                                                                                  \
    "strides = [1, 1] + stride; dilations = [1, 1] + dilation; pads = [];"                                             \
    "for p in padding { pads = pads + [p, p] }"                                                                        \
    "format = n == 3 ? 'NCDHW' : 'NCHW'; flat = n == 1;"

#define COMMON "strides=strides, pads=pads, dilations=dilations, groups=groups, data_format=format"

static const fx_recipe RECIPES[] = {
    {"aten.convolution.default", "input, weight, bias, stride, padding, dilation, transposed, output_padding, groups",
     LISTS
     "still = not dynamic(input) and not dynamic(weight);"
     "if flat { input = like(Unsqueeze(input, axes=[2]), input); weight = like(Unsqueeze(weight, axes=[2]), weight) }"
     "if not transposed {"
     "  y = n == 3 ? Conv3D(input, weight, bias, None, " COMMON ") : Conv2D(input, weight, bias, None, " COMMON ");"
     "  return flat ? Squeeze(y, axis=[2]) : y"
     "}"
     "k = len(padding); sizes = [];"
     "if n == 3 and still { for d in outshape { sizes = sizes + [const(d, i32)] } }"
     "else {"
     "  s = Shape(input); first = Gather(s, 0); ins = []; for i in range(k) { ins = ins + [Gather(s, 2 + i)] }"
     "  t = Shape(weight); c = Mul(Gather(t, 1), groups); ks = []; for i in range(k) { ks = ks + [Gather(t, 2 + i)] }"
     "  sizes = [first, c];"
     "  for i in range(k) {"
     "    a = Mul(Sub(ins[i], 1), stride[i]); b = Mul(dilation[i], Sub(ks[i], 1));"
     "    sizes = sizes + [Add(Add(a, b), output_padding[i] + 1 - 2 * padding[i])]"
     "  }"
     "  casts = []; for x in sizes { casts = casts + [Cast(x, dst_type=i32)] } sizes = casts"
     "}"
     "p = Pack(sizes, N=len(sizes), axis=0); extra = [0, 0] + output_padding;"
     "y = n == 3 ? Conv3DTranspose(p, input, weight, bias, None, " COMMON ", output_padding=extra)"
     " : Conv2DTranspose(p, input, weight, bias, None, " COMMON ", output_padding=extra);"
     "flat ? Squeeze(y, axis=[2]) : y",
     false},
    {"aten.convolution_backward.default",
     "grad, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask",
     LISTS
     "sizes = shape(input); still = not dynamic(input) and n == 2; d = dtype(weight); x = None; w = None; b = None;"
     "if flat {"
     "  input = Unsqueeze(input, axes=[2]); weight = Unsqueeze(weight, axes=[2]); grad = Unsqueeze(grad, axes=[2])"
     "}"
     "if mask[0] {"
     "  if transposed {"
     "    x = n == 3 ? Conv3D(grad, weight, None, None, " COMMON ") : Conv2D(grad, weight, None, None, " COMMON ")"
     "  } else {"
     "    s = still ? sizes : Shape(input);"
     "    x = n == 3 ? Conv3DBackpropInput(s, weight, grad, " COMMON ") : Conv2DBackpropInput(s, weight, grad, " COMMON
     ")"
     "  }"
     "}"
     "if mask[1] {"
     "  t = Shape(weight); from = transposed ? grad : input; to_ = transposed ? input : grad;"
     "  w = n == 3 ? Conv3DBackpropFilter(from, t, to_, " COMMON ") : Conv2DBackpropFilter(from, t, to_, " COMMON ");"
     "  if d != f32 { w = Cast(w, dst_type=d) }"
     "}"
     "if mask[2] {"
     "  b = ReduceSum(FlattenV2(grad, axis=n == 3 ? 3 : 2), n == 3 ? [0, 2, 3] : [0, 2], keep_dims=False)"
     "}"
     "if flat { if mask[0] { x = Squeeze(x, axis=[2]) } if mask[1] { w = Squeeze(w, axis=[2]) } }"
     "[x, w, b]",
     false},
};

const fx_recipe_table fx_recipes_convolution = {RECIPES, N_OF(RECIPES)};
