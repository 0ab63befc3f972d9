/* operators.c - the different names of the same operator in PyTorch's graphs. */
#include <string.h>

#include "pair/traits.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

typedef struct piece {
    const char *text;
    size_t length;
} piece;

/* "aten.add_.Tensor": "add". Keeps namespaces other than PyTorch's own. */
static piece base_of(const char *target)
{
    static const char *const namespaces[] = {"aten.", "prims.", "operator.", "math.", "_operator."};
    for (size_t i = 0; i < sizeof namespaces / sizeof namespaces[0]; i++) {
        size_t length = strlen(namespaces[i]);
        if (strncmp(target, namespaces[i], length) == 0) {
            target += length;
            size_t n = strcspn(target, ".");
            n -= n > 1 && target[n - 1] == '_' && target[n - 2] != '_';
            n -= n > 5 && memcmp(target + n - 5, "_copy", 5) == 0 && (n < 8 || memcmp(target, "_to_copy", 8) != 0) ? 5
                                                                                                                   : 0;
            return (piece){target, n};
        }
    }
    const char *overload = strrchr(target, '.');
    bool is_overload = overload != NULL && strchr(target, '.') != overload;
    return (piece){target, is_overload ? (size_t)(overload - target) : strlen(target)};
}

static bool is(piece base, const char *name)
{
    return strlen(name) == base.length && memcmp(base.text, name, base.length) == 0;
}

/* Each line: variants of one operator, which compute the same quantity. */
static const char *const families[][8] = {
    {"_to_copy", "to", "convert_element_type", "type_as"},
    {"clone", "contiguous", "lift_fresh", "detach", "alias"},
    {"view", "reshape", "_unsafe_view", "unsafe_view", "_reshape_alias", "flatten"},
    {"transpose", "permute", "t", "swapaxes", "movedim", "numpy_T", "mT"},
    {"mm", "bmm", "matmul", "dot", "mv"},
    {"addmm", "linear"},
    {"_softmax", "softmax", "_safe_softmax"},
    {"_log_softmax", "log_softmax"},
    {"native_layer_norm", "layer_norm"},
    {"native_group_norm", "group_norm"},
    {"native_dropout", "dropout"},
    {"convolution", "_convolution", "conv2d", "conv1d", "conv3d", "mkldnn_convolution", "convolution_overrideable"},
    {"native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_functional", "cudnn_batch_norm",
     "_native_batch_norm_legit_no_training", "_batch_norm_with_update", "batch_norm"},
    {"_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_for_cpu",
     "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
     "_scaled_dot_product_fused_attention_overrideable", "_scaled_dot_product_attention_math",
     "scaled_dot_product_attention"},
    {"scalar_tensor", "full"},
    {"rms_norm", "_fused_rms_norm"},
    {"mean", "_mean"},
    {"div", "true_divide"},
    {"mul", "multiply"},
    {"sub", "subtract"},
    {"embedding", "embedding_dense"},
};

uint64_t fx_operator_base(const char *target)
{
    piece base = base_of(target);
    return XXH3_64bits(base.text, base.length) | 1u;
}

uint64_t fx_operator_family(const char *target)
{
    piece base = base_of(target);
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        for (size_t k = 0; k < 8 && families[i][k] != NULL; k++) {
            if (is(base, families[i][k])) {
                return XXH3_64bits(families[i][0], strlen(families[i][0])) | 1u;
            }
        }
    }
    return fx_operator_base(target);
}

bool fx_same_operator(const char *golden, const char *target)
{
    piece a = base_of(golden), b = base_of(target);
    return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
}

static bool is_one_of(const char *target, const char *const *names, size_t n_names)
{
    piece base = base_of(target);
    for (size_t i = 0; i < n_names; i++) {
        if (is(base, names[i])) {
            return true;
        }
    }
    return false;
}

bool fx_is_commutative(const char *target)
{
    static const char *const names[] = {"add",         "mul",        "multiply",    "maximum",    "minimum",
                                        "eq",          "ne",         "logical_and", "logical_or", "logical_xor",
                                        "bitwise_and", "bitwise_or", "bitwise_xor", "dot"};
    return is_one_of(target, names, sizeof names / sizeof names[0]);
}

bool fx_passes_on(const char *target)
{
    static const char *const names[] = {"detach", "alias", "clone", "contiguous", "lift_fresh"};
    return is_one_of(target, names, sizeof names / sizeof names[0]);
}

bool fx_is_permuting(const char *target)
{
    static const char *const names[] = {"t",  "transpose", "permute", "swapaxes", "movedim",
                                        "mT", "numpy_T",   "flip",    "roll"};
    return is_one_of(target, names, sizeof names / sizeof names[0]);
}

bool fx_is_part(const char *target)
{
    static const char *const names[] = {"select", "slice", "narrow"};
    return is_one_of(target, names, sizeof names / sizeof names[0]);
}

bool fx_keeps_values(const char *target)
{
    static const char *const names[] = {"view",    "reshape", "_unsafe_view",  "expand",
                                        "squeeze", "slice",   "_reshape_alias"};
    return is_one_of(target, names, sizeof names / sizeof names[0]);
}
