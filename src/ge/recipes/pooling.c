/* Pooling, resizing, sampling and padding. */
#include "ge/lower.h"

#define N_OF(table) (sizeof(table) / sizeof((table)[0]))

/* kernel, stride and padding of two dimensions each; a stride that is not given is the kernel. */
#define WINDOW2                                                                                                        \
    "k = len(kernel_size) == 1 ? kernel_size * 2 : kernel_size; s = stride ? stride : k; s = len(s) == 1 ? s * 2 : s;" \
    "p = islist(padding) ? padding : [padding]; p = len(p) == 1 ? p * 2 : p;"
#define WINDOW3                                                                                                        \
    "k = len(kernel_size) == 1 ? kernel_size * 3 : kernel_size; s = stride ? stride : k; s = len(s) == 1 ? s * 3 : s;" \
    "p = islist(padding) ? padding : [padding]; p = len(p) == 1 ? p * 3 : p;"                                          \
    "d = islist(dilation) ? dilation : [dilation]; d = len(d) == 1 ? d * 3 : d;"
#define DILATION2 "d = islist(dilation) ? dilation : [dilation]; d = len(d) == 1 ? d * 2 : d;"
#define MAX_ATTRS                                                                                                      \
    "ksize=[1, k[0], k[1], 1], strides=[1, s[0], s[1], 1], pads=[1, p[0], p[1], 1], dilation=[1, d[0], d[1], 1],"      \
    " ceil_mode=ceil_mode"

#define MODES                                                                                                          \
    "m = ['bilinear', 'nearest', 'bicubic'][interpolation_mode]; p = ['zeros', 'border', 'reflection'][padding_mode];"
#define SAMPLER(aten, ge)                                                                                              \
    {                                                                                                                  \
        "aten." aten ".default", "input, grid, interpolation_mode, padding_mode, align_corners",                       \
            MODES "h = out == f16; x = h ? to(input, f32) : input; g = h ? to(grid, f32) : grid;"                      \
                  "Cast(" ge                                                                                           \
                  "(x, g, interpolation_mode=m, padding_mode=p, align_corners=align_corners), dst_type=out)",          \
            false                                                                                                      \
    }

static const fx_recipe RECIPES[] = {
    {"aten._adaptive_avg_pool2d.default", "self, output_size", "AdaptiveAvgPool2d(self, output_size=output_size)",
     false},
    {"aten._adaptive_avg_pool2d_backward.default", "grad, self",
     "if dynamic(self) { raise('torch.ops.aten._adaptive_avg_pool2d_backward.default ge_converter is not implemented"
     " when self is dynamic') }"
     "AdaptiveAvgPool2dGrad(grad, orig_input_shape=shape(self))",
     false},
    {"aten.avg_pool2d.default",
     "self, kernel_size, stride=[], padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None",
     WINDOW2
     "if divisor_override != None and (divisor_override < 1 or divisor_override > 255) {"
     "  raise('The value of divisor_override = ', divisor_override, ' is invalid, only support [1, 255] at present.')"
     "}"
     "flat = rank(self) == 3; x = flat ? Unsqueeze(self, axes=[0]) : self;"
     "exclusive = not count_include_pad or out == f16;"
     "y = AvgPoolV2(x, ksize=[1, 1, k[0], k[1]], strides=[1, 1, s[0], s[1]], pads=[p[0], p[0], p[1], p[1]],"
     " ceil_mode=ceil_mode, exclusive=exclusive, divisor_override=divisor_override == None ? 0 : divisor_override);"
     "flat ? Squeeze(y, axis=[0]) : y",
     false},
    {"aten.avg_pool2d_backward.default",
     "grad, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override",
     WINDOW2
     "AvgPoolV2Grad(Shape(self), grad, ksize=[1, 1, k[0], k[1]], strides=[1, 1, s[0], s[1]], padding_mode='CALCULATED',"
     " pads=[p[0], p[0], p[1], p[1]], data_format='NCHW', global_pooling=False, ceil_mode=ceil_mode,"
     " exclusive=not count_include_pad, divisor_override=divisor_override == None ? 0 : divisor_override)",
     false},
    {"aten.max_pool2d_with_indices.default", "self, kernel_size, stride=[], padding=0, dilation=1, ceil_mode=False",
     WINDOW2 DILATION2 "y, i = MaxPoolWithArgmaxV1(self, " MAX_ATTRS "); j = Identity(y); [y, Cast(j, dst_type=i64)]",
     false},
    {"aten.max_pool2d_with_indices_backward.default",
     "grad, self, kernel_size, stride, padding, dilation, ceil_mode, indices",
     WINDOW2 DILATION2 "y, i = MaxPoolWithArgmaxV1(self, " MAX_ATTRS
                       "); MaxPoolGradWithArgmaxV1(self, grad, i, " MAX_ATTRS ")",
     false},
    {"aten.max_pool3d_with_indices.default", "self, kernel_size, stride=[], padding=0, dilation=1, ceil_mode=False",
     WINDOW3 "y, i = MaxPool3DWithArgmaxV2(self, ksize=k, strides=s, pads=p, dilation=d, ceil_mode=ceil_mode);"
             "[y, Cast(i, dst_type=i64)]",
     false},
    {"aten.upsample_nearest2d.default", "self, output_size, scales_h=None, scales_w=None",
     "ResizeNearestNeighborV2(self, to(output_size, i32), align_corners=False, half_pixel_centers=False)", false},
    {"aten.upsample_nearest2d_backward.default", "grad, output_size, input_size, scales_h=None, scales_w=None",
     "x = to(grad, f32);"
     "y = ResizeNearestNeighborV2Grad(x, const(input_size[2:], i32), align_corners=False, half_pixel_centers=False);"
     "Cast(y, dst_type=out)",
     false},
    SAMPLER("grid_sampler_2d", "GridSampler2D"),
    SAMPLER("grid_sampler_3d", "GridSampler3D"),
    {"aten.grid_sampler_2d_backward.default",
     "grad, input, grid, interpolation_mode, padding_mode, align_corners, mask",
     MODES "h = dtype(input) == f16; e = dtype(input);"
           "a = h ? to(grad, f32) : grad; x = h ? to(input, f32) : input; g = h ? to(grid, f32) : grid;"
           "dx, dg = GridSampler2DGrad(a, x, g, interpolation_mode=m, padding_mode=p, align_corners=align_corners);"
           "[Cast(dx, dst_type=e), Cast(dg, dst_type=e)]",
     false},
    {"aten.reflection_pad2d.default", "self, padding",
     "flat = rank(self) == 3; x = flat ? Unsqueeze(self, axes=[0]) : self;"
     "r = Reshape([0, 0, 0, 0, padding[2], padding[3], padding[0], padding[1]], [4, 2]);"
     "y = MirrorPad(x, r, mode='REFLECT'); flat ? Squeeze(y, axis=[0]) : y",
     false},
    {"aten.reflection_pad2d_backward.default", "grad, self, padding",
     "flat = rank(self) == 3; x = flat ? Unsqueeze(grad, axes=[0]) : grad;"
     "y = PadV3Grad(x, [0, 0, 0, 0, padding[2], padding[3], padding[0], padding[1]], mode='reflect',"
     " paddings_contiguous=True); flat ? Squeeze(y, axis=[0]) : y",
     false},
    {"aten.replication_pad1d.default", "self, padding",
     "x = Unsqueeze(self, axes=[0]);"
     "y = PadV3(x, [0, 0, 0, 0, 0, 0] + padding, [0], mode='edge', paddings_contiguous=True); Squeeze(y, axis=[0])",
     false},
    {"aten.replication_pad1d_backward.default", "grad, self, padding",
     "x = Unsqueeze(grad, axes=[0]); y = PadV3Grad(x, [0, 0, 0, 0, 0, 0] + padding, mode='edge', "
     "paddings_contiguous=True);"
     "Squeeze(y, axis=[0])",
     false},
};

const fx_recipe_table fx_recipes_pooling = {RECIPES, N_OF(RECIPES)};
