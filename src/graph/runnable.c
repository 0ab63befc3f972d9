/* runnable.c - which functions the runnable text of a graph may call: a record is data that may come from anybody. */
#include <string.h>

#include "graph/python.h"

static bool is_among(const char *const *names, size_t n, const char *name, size_t length)
{
    for (size_t i = 0; i < n; i++) {
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0) {
            return true;
        }
    }
    return false;
}

#define IS_AMONG(names, name, length) is_among(names, sizeof(names) / sizeof *(names), name, length)

/* Not "call", "attrgetter", "methodcaller", "setitem" and similar functions, which execute their arguments. */
static const char *const operator_names[] = {
    "abs",   "add",  "and_",    "concat", "contains", "eq",        "floordiv", "ge",      "getitem", "gt",
    "index", "inv",  "invert",  "is_",    "is_not",   "le",        "lshift",   "lt",      "matmul",  "mod",
    "mul",   "ne",   "neg",     "not_",   "or_",      "pos",       "pow",      "rshift",  "sub",     "truediv",
    "truth", "xor",  "iadd",    "iand",   "iconcat",  "ifloordiv", "ilshift",  "imatmul", "imod",    "imul",
    "ior",   "ipow", "irshift", "isub",   "itruediv", "ixor"};

static const char *const builtin_names[] = {"abs", "bool", "complex", "divmod", "float", "int",   "len", "list",
                                            "max", "min",  "pow",     "range",  "round", "slice", "sum", "tuple"};

static const char *const math_names[] = {
    "acos",  "asin",  "atan", "atan2", "ceil",  "cos",  "cosh", "exp", "fabs", "floor", "fmod", "gcd",  "isfinite",
    "isinf", "isnan", "log",  "log10", "log1p", "log2", "pow",  "sin", "sinh", "sqrt",  "tan",  "tanh", "trunc"};

/* Functions of torch over symbolic numbers. */
static const char *const torch_names[] = {
    "sym_float", "sym_fresh_size", "sym_int",   "sym_ite",  "sym_max",  "sym_min",  "sym_not",  "sym_sqrt",
    "sym_sum",   "_sym_sqrt",      "_sym_log2", "_sym_sin", "_sym_cos", "_sym_tan", "_sym_exp", "_sym_log10"};

/* Operators of torch with the names of Python's special methods. */
static const char *const special_operators[] = {"__and__",  "__iand__",   "__ilshift__", "__ior__",    "__irshift__",
                                                "__ixor__", "__lshift__", "__or__",      "__rshift__", "__xor__"};

/* Attributes of torch.ops that are not namespaces. */
static const char *const not_namespaces[] = {"import_module", "load_library", "loaded_libraries"};

/* "NAMESPACE.OPERATOR" or "NAMESPACE.OPERATOR.OVERLOAD": looked up by torch among its registered operators. */
static bool is_operator(const char *name)
{
    size_t n_parts = 0;
    for (const char *part = name;; n_parts++) {
        size_t length = strcspn(part, ".");
        bool is_special = length >= 2 && part[0] == '_' && part[1] == '_';
        if (is_special && (n_parts != 1 || !IS_AMONG(special_operators, part, length))) {
            return false;
        }
        if (n_parts == 0 && IS_AMONG(not_namespaces, part, length)) {
            return false;
        }
        if (part[length] == '\0') {
            return n_parts == 1 || n_parts == 2;
        }
        part += length + 1;
    }
}

bool fx_python_may_call(const char *target)
{
    static const struct {
        const char *prefix;
        const char *const *names;
        size_t n_names;
    } modules[] = {{"operator.", operator_names, sizeof operator_names / sizeof *operator_names},
                   {"builtins.", builtin_names, sizeof builtin_names / sizeof *builtin_names},
                   {"math.", math_names, sizeof math_names / sizeof *math_names},
                   {"torch.", torch_names, sizeof torch_names / sizeof *torch_names}};
    if (!fx_python_is_dotted(target)) {
        return false;
    }
    if (strncmp(target, "torch.ops.", 10) == 0) {
        return is_operator(target + 10);
    }
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        size_t length = strlen(modules[i].prefix);
        if (strncmp(target, modules[i].prefix, length) == 0) {
            return is_among(modules[i].names, modules[i].n_names, target + length, strlen(target + length));
        }
    }
    return false;
}

bool fx_python_may_call_method(const char *name)
{
    static const char *const names[] = {"contiguous", "dim",     "expand",    "flatten",   "float",   "item",   "mean",
                                        "numel",      "permute", "reshape",   "size",      "squeeze", "stride", "sum",
                                        "t",          "to",      "transpose", "unsqueeze", "view"};
    return IS_AMONG(names, name, strlen(name));
}
