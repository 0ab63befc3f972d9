/*
 * state.h - the module's state: its types, and the torch objects that the run loop uses.
 *
 * There are no globals: each of our objects finds the module state through its type. torch is imported on first use, so
 * that a dump can be read without it.
 */
#ifndef FX_EXT_STATE_H
#define FX_EXT_STATE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Our types: field, spec. */
#define FX_TYPES(X)                                                                                                    \
    X(graph_type, fx_graph_spec)                                                                                       \
    X(dump_type, fx_dump_spec)                                                                                         \
    X(program_type, fx_program_spec)                                                                                   \
    X(reader_type, fx_reader_spec)                                                                                     \
    X(tensors_type, fx_tensors_spec)                                                                                   \
    X(values_type, fx_values_spec)                                                                                     \
    X(report_type, fx_report_spec)                                                                                     \
    X(verification_type, fx_verification_spec)

/* Objects that fx_state_torch() fetches: field, module, attribute path. */
#define FX_TORCH_OBJECTS(X)                                                                                            \
    X(tensor_type, "torch", "Tensor")                                                                                  \
    X(parameter_type, "torch.nn.parameter", "Parameter")                                                               \
    X(dtype_type, "torch", "dtype")                                                                                    \
    X(device_type, "torch", "device")                                                                                  \
    X(layout_type, "torch", "layout")                                                                                  \
    X(memory_format_type, "torch", "memory_format")                                                                    \
    X(generator_type, "torch", "Generator")                                                                            \
    X(size_type, "torch", "Size")                                                                                      \
    X(symint_type, "torch", "SymInt")                                                                                  \
    X(symfloat_type, "torch", "SymFloat")                                                                              \
    X(symbool_type, "torch", "SymBool")                                                                                \
    X(strided, "torch", "strided")                                                                                     \
    X(uint8, "torch", "uint8")                                                                                         \
    X(uint16, "torch", "uint16")                                                                                       \
    X(conj, "torch", "conj")                                                                                           \
    X(neg_view, "torch", "_neg_view")                                                                                  \
    X(no_grad, "torch", "no_grad")                                                                                     \
    X(disable_dispatch, "torch._C", "_DisableTorchDispatch")                                                           \
    X(disable_function, "torch._C", "DisableTorchFunction")                                                            \
    X(is_function_mode_on, "torch._C", "_is_torch_function_mode_enabled")                                              \
    X(no_torch_dispatch, "torch._C", "_disabled_torch_dispatch_impl")                                                  \
    X(random_tag, "torch._C", "Tag.nondeterministic_seeded")                                                           \
    X(op_overload_type, "torch._ops", "OpOverload")                                                                    \
    X(op_packet_type, "torch._ops", "OpOverloadPacket")                                                                \
    X(higher_order_type, "torch._ops", "HigherOrderOperator")                                                          \
    X(fx_node_type, "torch.fx", "Node")                                                                                \
    X(graph_module_type, "torch.fx", "GraphModule")                                                                    \
    X(fake_tensor_type, "torch._subclasses.fake_tensor", "FakeTensor")                                                 \
    X(same_bits, "fxtap.devices", "same_bits")                                                                         \
    X(synchronise, "fxtap.devices", "synchronise")                                                                     \
    X(getitem, "_operator", "getitem")

typedef struct fx_state {
    bool has_torch; /* all of FX_TORCH_OBJECTS are loaded */
#define X(field, ...) PyObject *field;
    FX_TYPES(X)
    FX_TORCH_OBJECTS(X)
#undef X
    const struct fx_dlpack_api *exchange; /* torch's table; NULL if it has none */
    PyCFunction is_neg;                   /* Tensor.is_neg and is_conj, called without a lookup */
    PyCFunction is_conj;
    PyObject *undefined_memory; /* a fxtap.undefined.Memory and the dict of its regions; NULL before first use */
    PyObject *undefined_regions;
    bool force_fallback; /* tests: never use the exchange table */
} fx_state;

/* The module state, from an instance of one of our heap types. */
fx_state *fx_state_of(PyObject *self);
fx_state *fx_state_of_module(PyObject *module);

/* Imports torch once. Returns 0, or -1 with an exception. */
int fx_state_torch(fx_state *state);

int fx_state_traverse(fx_state *state, visitproc visit, void *arg);
void fx_state_clear(fx_state *state);

/* object.a.b; a new reference, or NULL with an exception. */
PyObject *fx_attribute(PyObject *object, const char *path);

/* An optional attribute: 1 and a new reference; 0 if missing; -1 with an exception. */
int fx_optional_attr(PyObject *object, const char *name, PyObject **out);

/*
 * UTF-8 of a str; a bytes object, or NULL with an exception. A lone surrogate (from a path or an argument that is not
 * UTF-8) is escaped as "\udcff", so that every reader of the index can decode it.
 */
PyObject *fx_utf8(PyObject *text);

/* Adds one of our types to the module and stores it in *slot. */
int fx_add_type(PyObject *module, PyType_Spec *spec, PyObject **slot);

/* A zeroed object of one of our types, or NULL with MemoryError; and freeing one, with its reference to the type. */
PyObject *fx_object_new(PyObject *type);
void fx_object_free(PyObject *self);

#endif
