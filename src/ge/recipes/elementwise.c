/* Elementwise operators. Operands become the result's dtype from left to right; numbers become constants of it. */
#include "ge/lower.h"

#define N_OF(table) (sizeof(table) / sizeof((table)[0]))

/* One operand, unchanged or in the result's dtype. */
#define UNARY(aten, ge)                                                                                                \
    {                                                                                                                  \
        "aten." aten ".default", "self", ge "(self)", false                                                            \
    }
#define UNARY_OUT(aten, ge)                                                                                            \
    {                                                                                                                  \
        "aten." aten ".out", "self", ge "(self)", false                                                                \
    }
#define UNARY_TO(aten, ge)                                                                                             \
    {                                                                                                                  \
        "aten." aten ".default", "self", ge "(to(self, out))", false                                                   \
    }
#define ROUNDING(aten, ge)                                                                                             \
    {                                                                                                                  \
        "aten." aten ".default", "self", "Cast(" ge "(self), dst_type=out)", false                                     \
    }
/* Two operands in the result's dtype. */
#define BINARY_BODY(ge) "x = to(self, out); y = to(other, out); " ge "(x, y)"
#define BINARY(target, ge)                                                                                             \
    {                                                                                                                  \
        "aten." target, "self, other", BINARY_BODY(ge), false                                                          \
    }

#define NAN_TO_NUM                                                                                                     \
    "if posinf == None or neginf == None { raise('must be real number, not NoneType') }"                               \
    "NanToNum(self, nan=nan == None ? 0.0 : nan, posinf=posinf, neginf=neginf)"

static const fx_recipe RECIPES[] = {
    {"aten.abs.default", "self", "dtype(self) == u8 ? self : Abs(self)", false},
    UNARY("neg", "Neg"),
    UNARY("relu", "Relu"),
    UNARY("sign", "Sign"),
    UNARY("sgn", "Sign"),
    UNARY("acos", "Acos"),
    UNARY("acosh", "Acosh"),
    UNARY_TO("asin", "Asin"),
    UNARY_TO("asinh", "Asinh"),
    UNARY("atan", "Atan"),
    UNARY("atanh", "Atanh"),
    UNARY("cos", "Cos"),
    UNARY("cosh", "Cosh"),
    UNARY("erf", "Erf"),
    UNARY("erfinv", "Erfinv"),
    {"aten.erfinv.out", "", NULL, false}, /* registered, and raises */
    {"aten.exp.default", "self", "Exp(dtype(self) == bool ? to(self, out) : self)", false},
    UNARY("expm1", "Expm1"),
    UNARY_OUT("expm1", "Expm1"),
    UNARY("log", "Log"),
    {"aten.log2.default", "self", "Log(self, base=2)", false},
    {"aten.log10.default", "self", "Log(self, base=10)", false},
    UNARY("log1p", "Log1p"),
    UNARY_TO("reciprocal", "Reciprocal"),
    UNARY("rsqrt", "Rsqrt"),
    UNARY_TO("sqrt", "Sqrt"),
    UNARY("sigmoid", "Sigmoid"),
    UNARY("sin", "Sin"),
    UNARY("sinh", "Sinh"),
    UNARY("tan", "Tan"),
    UNARY("tanh", "Tanh"),
    UNARY("silu", "Swish"),
    UNARY("mish", "Mish"),
    UNARY_OUT("mish", "Mish"),
    UNARY("hardsigmoid", "HardSigmoid"),
    UNARY("hardswish", "HardSwish"),
    UNARY("isinf", "IsInf"),
    UNARY("round", "Round"),
    ROUNDING("ceil", "Ceil"),
    ROUNDING("floor", "Floor"),
    {"aten.gelu.default", "self, approximate='none'", "Gelu(self)", false},
    {"aten.elu.default", "self, alpha=1, scale=1, input_scale=1",
     "Elu(self, alpha=alpha, scale=scale, input_scale=input_scale)", false},
    {"aten.leaky_relu.default", "self, negative_slope=0.01", "LeakyRelu(self, negative_slope=negative_slope)", false},
    {"aten.glu.default", "self, dim=-1", "GLU(self, dim=dim)", false},
    {"aten.hardtanh.default", "self, min_val=-1, max_val=1",
     "ClipByValueV2(self, const(min_val, out), const(max_val, out))", false},
    {"aten.threshold.default", "self, threshold, value", "ThresholdV2(self, threshold, value)", false},
    {"aten._prelu_kernel.default", "self, weight", "PRelu(self, weight)", false},
    {"aten.prelu.default", "self, weight", "PRelu(self, weight)", false},
    {"aten.nan_to_num.default", "self, nan=None, posinf=None, neginf=None", NAN_TO_NUM, false},
    {"aten.nan_to_num.out", "self, nan=None, posinf=None, neginf=None", NAN_TO_NUM, false},

    {"aten.add.Tensor", "self, other, alpha=1",
     "x = to(self, out); y = to(other, out); alpha == 1 ? Add(x, y) : AxpyV2(x, y, const(alpha, out))", false},
    {"aten.add.Scalar", "self, other, alpha=1",
     "x = to(self, out); y = to(other, out); alpha == 1 ? Add(x, y) : AxpyV2(x, y, const(alpha, out))", false},
    {"aten.sub.Tensor", "self, other, alpha=1",
     "if alpha != 1 { other = Mul(other, const(alpha, out)) } x = to(self, out); y = to(other, out); Sub(x, y)", false},
    {"aten.rsub.Tensor", "self, other, alpha=1",
     "if alpha != 1 { self = Mul(self, const(alpha, out)) } else { self = to(self, out); other = to(other, out) }"
     "Sub(other, self)",
     false},
    {"aten.rsub.Scalar", "self, other, alpha=1",
     "x = to(self, out); y = const(other, out); Sxpy(y, x, const(alpha, out))", false},
    {"aten.mul.Tensor", "self, other",
     "if isnum(other) and out in [f16, bf16] and dtype(self) == out { m = Muls(self, value=other) }"
     "else if out == bool and not isnum(other) { x = to(self, u8); y = to(other, u8); m = Mul(x, y) }"
     "else { x = to(self, out); y = to(other, out); m = Mul(x, y) }"
     "Cast(m, dst_type=out)",
     false},
    {"aten.mul.Scalar", "self, other", BINARY_BODY("Mul"), false},
    BINARY("div.Tensor", "RealDiv"),
    BINARY("div.Scalar", "RealDiv"),
    {"aten.div.Tensor_mode", "self, other, rounding_mode=None",
     "x = to(self, out); y = to(other, out);"
     "if rounding_mode == 'floor' { return FloorDiv(x, y) }"
     "d = RealDiv(x, y);"
     "if rounding_mode == None { return d }"
     "out == i64 ? Cast(Trunc(Cast(d, dst_type=f32)), dst_type=out) : Trunc(d)",
     false},
    BINARY("floor_divide.default", "FloorDiv"),
    BINARY("remainder.Tensor", "FloorMod"),
    BINARY("remainder.Scalar", "FloorMod"),
    BINARY("remainder.Scalar_Tensor", "FloorMod"),
    BINARY("pow.Tensor_Tensor", "Pow"),
    BINARY("pow.Tensor_Scalar", "Pow"),
    {"aten.pow.Scalar", "self, exponent", "x = to(self, out); y = to(exponent, out); Pow(x, y)", false},
    BINARY("maximum.default", "Maximum"),
    {"aten.minimum.default", "self, other", "if out == bool { return Mul(self, other) }" BINARY_BODY("Minimum"), false},
    {"aten.addcmul.default", "self, tensor1, tensor2, value=1",
     "a = to(self, out); b = to(tensor1, out); c = to(tensor2, out); Addcmul(a, b, c, const(value, out))", false},
    {"aten.addcdiv.default", "self, tensor1, tensor2, value=1",
     "a = to(self, out); b = to(tensor1, out); c = to(tensor2, out); Addcdiv(a, b, c, const(value, out))", false},
    {"aten.lerp.Scalar", "self, end, weight", "Lerp(self, end, weight)", false},
    {"aten.where.self", "condition, self, other", "x = to(self, out); y = to(other, out); SelectV2(condition, x, y)",
     false},
    {"aten.clamp.default", "self, min=None, max=None",
     "x = to(self, out); low = const(min == None ? min(out) : min, out); high = const(max == None ? max(out) : max, "
     "out);"
     "ClipByValueV2(x, low, high)",
     false},
    {"aten.clamp_min.default", "self, min",
     "x = to(self, out); low = const(min, out); high = const(max(out), out); ClipByValueV2(x, low, high)", false},
    {"aten.clamp.Tensor", "self, min=None, max=None",
     "x = to(self, out); low = min == None ? const(min(out), out) : to(min, out);"
     "high = max == None ? const(max(out), out) : to(max, out); ClipByValueV2(x, low, high)",
     false},
    {"aten.masked_fill.Scalar", "self, mask, value", "MaskedFill(self, mask, const(value, out))", false},
    {"aten.masked_fill_.Scalar", "self, mask, value", "MaskedFill(self, mask, value)", false},
    {"aten.masked_fill.Tensor", "self, mask, value", "MaskedFill(self, mask, value)", false},

    {"aten.gelu_backward.default", "grad, self, approximate='none'", "GeluGrad(grad, self, grad)", false},
    {"aten.sigmoid_backward.default", "grad, output", "SigmoidGrad(output, grad)", false},
    {"aten.tanh_backward.default", "grad, output", "TanhGrad(output, grad)", false},
    {"aten.hardsigmoid_backward.default", "grad, self", "HardSigmoidGrad(grad, self)", false},
    {"aten.hardswish_backward.default", "grad, self", "HardSwishGrad(grad, self)", false},
    {"aten.hardtanh_backward.default", "grad, self, min_val, max_val",
     "HardtanhGrad(self, grad, min_val=min_val, max_val=max_val)", false},
    {"aten.leaky_relu_backward.default", "grad, self, negative_slope, is_result",
     "LeakyReluGrad(grad, self, negative_slope=negative_slope)", false},
    {"aten.elu_backward.default", "grad, alpha, scale, input_scale, is_result, self",
     "EluGradV2(grad, self, alpha=alpha, scale=scale, input_scale=input_scale, is_result=is_result)", false},
    {"aten.glu_backward.default", "grad, self, dim", "GLUGrad(grad, self, dim=dim)", false},
    {"aten.threshold_backward.default", "grad, self, threshold",
     "threshold == 0 ? ReluGrad(grad, self) : ThresholdGradV2D(grad, self, threshold=threshold)", false},
    {"aten._prelu_kernel_backward.default", "grad, self, weight", "PReluGrad(grad, self, weight)", false},
    {"aten.log_sigmoid_forward.default", "self", "[LogSigmoid(self), Identity(self)]", false},
    {"aten.log_sigmoid_forward.output", "self, output=None, buffer=None", "[LogSigmoid(self), Identity(self)]", false},
    {"aten.log_sigmoid_backward.default", "grad, self, buffer", "LogSigmoidGrad(grad, self)", false},
    {"aten.log_sigmoid_backward.grad_input", "grad, self, buffer, grad_input=None", "LogSigmoidGrad(grad, self)",
     false},

    {"prims.add.default", "self, other", "Add(self, other)", false},
    {"prims.mul.default", "self, other", "Mul(self, other)", false},
    {"prims.maximum.default", "self, other", "Maximum(self, other)", false},
    {"prims.minimum.default", "self, other", "Minimum(self, other)", false},
    {"prims.convert_element_type.default", "self, dtype", "Cast(self, dst_type=dtype)", false},
};

const fx_recipe_table fx_recipes_elementwise = {RECIPES, N_OF(RECIPES)};
