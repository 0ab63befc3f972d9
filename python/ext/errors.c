#include "errors.h"

#include <errno.h>
#include <string.h>

static PyObject *raise_os_error(void)
{
    errno = fxtap_error_errno();
    const char *path = fxtap_error_path();
    if (errno == 0) {
        PyErr_SetString(PyExc_OSError, fxtap_error_message());
        return NULL;
    }
    if (*path == '\0') {
        return PyErr_SetFromErrno(PyExc_OSError);
    }
    PyObject *name = PyUnicode_DecodeFSDefault(path);
    if (name != NULL) {
        PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, name);
        Py_DECREF(name);
    }
    return NULL;
}

static PyObject *type_of(fxtap_status status)
{
    switch (status) {
    case FXTAP_E_NOMEM:
        return PyExc_MemoryError;
    case FXTAP_E_INVALID:
    case FXTAP_E_FORMAT:
    case FXTAP_E_UNSUPPORTED:
        return PyExc_ValueError;
    case FXTAP_E_NOT_FOUND:
        return PyExc_LookupError;
    case FXTAP_E_EXISTS:
        return PyExc_FileExistsError;
    case FXTAP_E_CANCELLED:
        return PyExc_InterruptedError;
    case FXTAP_OK:
    case FXTAP_E_IO:
    case FXTAP_E_AGAIN:
    case FXTAP_E_DATABASE:
        break;
    }
    return PyExc_RuntimeError;
}

PyObject *fx_raise(fxtap_status status)
{
    if (status == FXTAP_E_IO) {
        return raise_os_error();
    }
    const char *message = fxtap_error_message();
    PyObject *text = PyUnicode_DecodeUTF8(message, (Py_ssize_t)strlen(message), "replace");
    if (text != NULL) {
        PyErr_SetObject(type_of(status), text);
        Py_DECREF(text);
    }
    return NULL;
}

/* The last line of a stack trace with a file, such as `File "x.py", line 3, in forward`, or "". */
static PyObject *last_frame(PyObject *node)
{
    PyObject *trace = PyObject_GetAttrString(node, "stack_trace");
    PyObject *lines = NULL;
    PyObject *frame = NULL;
    if (trace != NULL && PyUnicode_Check(trace)) {
        lines = PyObject_CallMethod(trace, "splitlines", NULL);
    }
    for (Py_ssize_t i = lines == NULL ? 0 : PyList_Size(lines); frame == NULL && !PyErr_Occurred() && i-- > 0;) {
        PyObject *stripped = PyObject_CallMethod(PyList_GetItem(lines, i), "strip", NULL);
        PyObject *is_file = stripped == NULL ? NULL : PyObject_CallMethod(stripped, "startswith", "s", "File \"");
        if (is_file == Py_True) {
            frame = Py_NewRef(stripped);
        }
        Py_XDECREF(stripped);
        Py_XDECREF(is_file);
    }
    Py_XDECREF(trace);
    Py_XDECREF(lines);
    PyErr_Clear();
    return frame != NULL ? frame : PyUnicode_FromString("");
}

void fx_error_note_node(PyObject *node)
{
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *target = PyObject_GetAttrString(node, "target");
    PyObject *frame = target == NULL ? NULL : last_frame(node);
    PyObject *note = NULL;
    if (frame != NULL) {
        const char *separator = PyUnicode_GetLength(frame) > 0 ? ", " : "";
        note = PyUnicode_FromFormat("in node %S = %S%s%U", node, target, separator, frame);
    }
    PyObject *done = note == NULL || value == NULL ? NULL : PyObject_CallMethod(value, "add_note", "O", note);
    Py_XDECREF(done);
    Py_XDECREF(note);
    Py_XDECREF(frame);
    Py_XDECREF(target);
    PyErr_Clear(); /* a failure to add the note must not replace the exception */
    PyErr_Restore(type, value, traceback);
}

PyObject *fx_error_take_line(void)
{
    PyObject *type;
    PyObject *value;
    PyObject *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyObject *name = type == NULL ? NULL : PyObject_GetAttrString(type, "__name__");
    PyObject *line = name == NULL ? NULL : PyUnicode_FromFormat("%U: %S", name, value);
    Py_XDECREF(name);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
    if (line == NULL) {
        PyErr_Clear();
        line = PyUnicode_FromString("unknown error");
    }
    return line;
}
