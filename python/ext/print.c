/* print.c - graph records as text: fxtap._core.print_graph() and summarise(). */
#include "print.h"

#include "errors.h"
#include "fxtap/print.h"
#include "record.h"

/* Clears a buffer and returns its bytes, or NULL with an exception if `status` is a failure. */
static PyObject *take(fxtap_buffer *buffer, fxtap_status status)
{
    PyObject *bytes = NULL;
    if (status == FXTAP_OK) {
        bytes = PyBytes_FromStringAndSize(buffer->bytes, (Py_ssize_t)buffer->length);
    } else {
        fx_raise(status);
    }
    fxtap_buffer_clear(buffer);
    return bytes;
}

PyObject *fx_print_graph(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"graph", "format", "title", "optimised", NULL};
    PyObject *object;
    const char *format;
    const char *title = NULL;
    int is_optimised = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "Os|$zp:print_graph", names, &object, &format, &title,
                                     &is_optimised)) {
        return NULL;
    }
    const fxtap_graph *graph = fx_graph_of(fx_state_of_module(module), object);
    if (graph == NULL) {
        return NULL;
    }
    fxtap_print_options options = {.struct_size = sizeof(options), .title = title, .optimised = is_optimised != 0};
    fxtap_status status = fxtap_print_format_from_name(format, &options.format);
    if (status != FXTAP_OK) {
        return fx_raise(status);
    }
    fxtap_buffer buffer;
    fxtap_buffer_init(&buffer);
    Py_BEGIN_ALLOW_THREADS status = fxtap_graph_print(graph, &options, &buffer);
    Py_END_ALLOW_THREADS return take(&buffer, status);
}

PyObject *fx_summarise(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"graph", "english", NULL};
    PyObject *object;
    int is_english = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$p:summarise", names, &object, &is_english)) {
        return NULL;
    }
    const fxtap_graph *graph = fx_graph_of(fx_state_of_module(module), object);
    if (graph == NULL) {
        return NULL;
    }
    fxtap_summary_options options = {.struct_size = sizeof(options), .english = is_english != 0};
    fxtap_buffer buffer;
    fxtap_buffer_init(&buffer);
    fxtap_status status = fxtap_graph_summary(graph, &options, &buffer);
    return take(&buffer, status);
}
