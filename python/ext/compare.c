/* compare.c - fxtap_compare() from Python: options, rules, and interruption by Ctrl-C. */
#include "compare.h"

#include <string.h>

#include "errors.h"
#include "reader.h"

#define N_AMOUNTS 6

typedef struct call { /* one running comparison */
    fxtap_compare_options options;
    fxtap_rule *rules;     /* their texts belong to `rule_tuples` */
    PyObject *rule_tuples; /* a tuple of tuples */
    PyObject *progress;    /* borrowed; NULL: no callback */
    PyThreadState *saved;  /* of the calling thread, while it is without the GIL */
} call;

/* Called in the calling thread, ten times a second: handles signals. Returns false with an exception to stop. */
static bool on_progress(void *context, uint64_t done, uint64_t total)
{
    call *c = context;
    PyEval_RestoreThread(c->saved);
    bool goes_on = PyErr_CheckSignals() == 0;
    if (goes_on && c->progress != NULL) {
        PyObject *result =
            PyObject_CallFunction(c->progress, "KK", (unsigned long long)done, (unsigned long long)total);
        goes_on = result != NULL;
        Py_XDECREF(result);
    }
    c->saved = PyEval_SaveThread();
    return goes_on;
}

/* None leaves the amount unset; anything else must be a number. */
static bool read_amount(PyObject *value, double *out)
{
    if (value == Py_None) {
        return true;
    }
    double number = PyFloat_AsDouble(value);
    if (PyErr_Occurred() != NULL) {
        return false;
    }
    if (!(number >= 0.0)) {
        PyErr_Format(PyExc_ValueError, "a tolerance must not be negative or NaN: %R", value);
        return false;
    }
    *out = number;
    return true;
}

static bool read_rule(PyObject *item, fxtap_rule *rule)
{
    PyObject *amounts[N_AMOUNTS];
    fxtap_rule_init(rule);
    if (!PyTuple_Check(item)) {
        PyErr_SetString(PyExc_TypeError, "a rule must be a tuple of nine items");
        return false;
    }
    if (!PyArg_ParseTuple(item, "zzzOOOOOO:rule", &rule->dtype, &rule->operator_name, &rule->node, &amounts[0],
                          &amounts[1], &amounts[2], &amounts[3], &amounts[4], &amounts[5])) {
        return false;
    }
    double *const fields[N_AMOUNTS] = {&rule->rtol,    &rule->atol,       &rule->min_cosine,
                                       &rule->max_abs, &rule->max_rel_l2, &rule->max_ulp};
    for (size_t i = 0; i < N_AMOUNTS; i++) {
        if (!read_amount(amounts[i], fields[i])) {
            return false;
        }
    }
    return true;
}

static bool read_rules(call *c, PyObject *rules)
{
    c->rule_tuples = rules == NULL ? PyTuple_New(0) : PySequence_Tuple(rules);
    if (c->rule_tuples == NULL) {
        return false;
    }
    size_t n = (size_t)PyTuple_Size(c->rule_tuples);
    c->rules = PyMem_Calloc(n + 1, sizeof *c->rules);
    if (c->rules == NULL) {
        PyErr_NoMemory();
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        if (!read_rule(PyTuple_GetItem(c->rule_tuples, (Py_ssize_t)i), &c->rules[i])) {
            return false;
        }
    }
    c->options.rules = c->rules;
    c->options.n_rules = n;
    return true;
}

static bool read_number(PyObject *value, int64_t *out)
{
    long long number = PyLong_AsLongLong(value);
    if (PyErr_Occurred() != NULL) {
        return false;
    }
    if (number < 0) { /* all, to the library; in Python it would be read as the last */
        PyErr_Format(PyExc_ValueError, "a run, rank, graph or step must be 0 or more, not %R", value);
        return false;
    }
    *out = number;
    return true;
}

/* (golden, target): two numbers, or one for both. */
static int read_pair(PyObject *value, void *out)
{
    int64_t *numbers = out;
    if (!PyTuple_Check(value)) {
        bool is_read = read_number(value, &numbers[0]);
        numbers[1] = numbers[0];
        return is_read;
    }
    if (PyTuple_Size(value) != 2) {
        PyErr_Format(PyExc_ValueError, "expected one number, or golden's and target's, not %R", value);
        return 0;
    }
    return read_number(PyTuple_GetItem(value, 0), &numbers[0]) && read_number(PyTuple_GetItem(value, 1), &numbers[1]);
}

typedef struct selection {
    int64_t run[2], rank[2], graph[2], step[2]; /* golden's, target's */
    PyObject *map_path;                         /* bytes, or NULL */
} selection;

static void take_selection(fxtap_compare_options *options, const selection *chosen)
{
    options->golden_run = chosen->run[0];
    options->target_run = chosen->run[1];
    options->golden_rank = chosen->rank[0];
    options->target_rank = chosen->rank[1];
    options->golden_graph = chosen->graph[0];
    options->target_graph = chosen->graph[1];
    options->golden_step = chosen->step[0];
    options->target_step = chosen->step[1];
    options->map_path = chosen->map_path == NULL ? NULL : PyBytes_AsString(chosen->map_path);
}

/* Reads the keywords that both functions share. Returns false with an exception. */
static bool read_options(call *c, PyObject *kwargs, selection *chosen)
{
    static char *names[] = {"run",     "rank",     "graph",     "step",    "op",       "map",
                            "rules",   "read_all", "fail_fast", "strict",  "step_of",  "explain",
                            "threads", "shard",    "n_shards",  "n_worst", "progress", NULL};
    int read_all = 0, fail_fast = 0, strict = 0, threads = 0;
    unsigned int shard = 0, n_shards = 0;
    Py_ssize_t n_worst = 5;
    PyObject *rules = NULL, *progress = NULL, *map = Py_None;
    PyObject *no_args = PyTuple_New(0);
    bool parsed = no_args != NULL &&
                  PyArg_ParseTupleAndKeywords(no_args, kwargs, "|$O&O&O&O&zOOpppzziIInO:compare", names, read_pair,
                                              chosen->run, read_pair, chosen->rank, read_pair, chosen->graph, read_pair,
                                              chosen->step, &c->options.pattern, &map, &rules, &read_all, &fail_fast,
                                              &strict, &c->options.step_of, &c->options.explain, &threads, &shard,
                                              &n_shards, &n_worst, &progress);
    Py_XDECREF(no_args);
    if (!parsed || (map != Py_None && !PyUnicode_FSConverter(map, &chosen->map_path)) || !read_rules(c, rules)) {
        return false;
    }
    if (n_worst < 1 || threads < 0) {
        PyErr_SetString(PyExc_ValueError, n_worst < 1 ? "n_worst must be 1 or more" : "threads must be 0 or more");
        return false;
    }
    take_selection(&c->options, chosen);
    c->options.read_all = read_all != 0;
    c->options.fail_fast = fail_fast != 0;
    c->options.strict = strict != 0;
    c->options.n_threads = threads;
    c->options.shard = shard;
    c->options.n_shards = n_shards;
    c->options.n_worst = (size_t)n_worst;
    c->progress = progress == Py_None ? NULL : progress;
    return true;
}

/* Runs without the GIL. Opens its own readers: a reader may be used by one thread at a time. */
static fxtap_status compare_paths(const char *golden_path, const char *target_path, const call *c, fxtap_report **out)
{
    fxtap_reader *golden = NULL, *target = NULL;
    fxtap_status status = fxtap_reader_open(golden_path, &golden);
    if (status == FXTAP_OK && target_path != NULL) {
        status = fxtap_reader_open(target_path, &target);
    }
    if (status == FXTAP_OK) {
        status = target_path == NULL ? fxtap_compare_ranks(golden, &c->options, out)
                                     : fxtap_compare(golden, target, &c->options, out);
    }
    fxtap_reader_close(golden);
    fxtap_reader_close(target);
    return status;
}

/* If `target_path` is NULL, compares the ranks of golden. */
static PyObject *compare(PyObject *module, const char *golden_path, const char *target_path, PyObject *kwargs)
{
    call c = {.rule_tuples = NULL};
    selection chosen = {.rank = {-1, -1}, .graph = {-1, -1}, .step = {-1, -1}};
    fxtap_report *report = NULL;
    PyObject *result = NULL;
    fxtap_compare_options_init(&c.options);
    c.options.progress = on_progress;
    c.options.context = &c;
    if (read_options(&c, kwargs, &chosen)) {
        c.saved = PyEval_SaveThread();
        fxtap_status status = compare_paths(golden_path, target_path, &c, &report);
        PyEval_RestoreThread(c.saved);
        if (status == FXTAP_OK) {
            result = fx_report_new(fx_state_of_module(module), report);
        } else if (PyErr_Occurred() == NULL) { /* else a signal handler or `progress` raised */
            fx_raise(status);
        }
    }
    PyMem_Free(c.rules);
    Py_XDECREF(c.rule_tuples);
    Py_XDECREF(chosen.map_path);
    return result;
}

PyObject *fx_compare_function(PyObject *module, PyObject *args, PyObject *kwargs)
{
    PyObject *golden = NULL, *target = NULL, *result = NULL;
    if (PyArg_ParseTuple(args, "O&O&:compare", PyUnicode_FSConverter, &golden, PyUnicode_FSConverter, &target)) {
        result = compare(module, PyBytes_AsString(golden), PyBytes_AsString(target), kwargs);
    }
    Py_XDECREF(golden);
    Py_XDECREF(target);
    return result;
}

PyObject *fx_compare_ranks_function(PyObject *module, PyObject *args, PyObject *kwargs)
{
    PyObject *dump = NULL, *result = NULL;
    if (PyArg_ParseTuple(args, "O&:compare_ranks", PyUnicode_FSConverter, &dump)) {
        result = compare(module, PyBytes_AsString(dump), NULL, kwargs);
    }
    Py_XDECREF(dump);
    return result;
}

static PyObject *amount(double value)
{
    return value >= 0.0 ? PyFloat_FromDouble(value) : Py_NewRef(Py_None);
}

static PyObject *rule_tuple(const fxtap_rule *rule)
{
    return Py_BuildValue("(NNNNNNNNN)", fx_py_text(rule->dtype), fx_py_text(rule->operator_name),
                         fx_py_text(rule->node), amount(rule->rtol), amount(rule->atol), amount(rule->min_cosine),
                         amount(rule->max_abs), amount(rule->max_rel_l2), amount(rule->max_ulp));
}

PyObject *fx_load_rules_function(PyObject *module, PyObject *path)
{
    (void)module;
    PyObject *bytes = NULL;
    fxtap_rule *rules = NULL;
    size_t n_rules = 0;
    if (!PyUnicode_FSConverter(path, &bytes)) {
        return NULL;
    }
    const char *name = PyBytes_AsString(bytes);
    fxtap_status status;
    Py_BEGIN_ALLOW_THREADS status = fxtap_rules_load(name, &rules, &n_rules);
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    if (status != FXTAP_OK) {
        return fx_raise(status);
    }
    PyObject *list = PyList_New((Py_ssize_t)n_rules);
    for (size_t i = 0; list != NULL && i < n_rules; i++) {
        PyObject *rule = rule_tuple(&rules[i]);
        if (rule == NULL || PyList_SetItem(list, (Py_ssize_t)i, rule) < 0) {
            Py_CLEAR(list);
        }
    }
    fxtap_rules_free(rules, n_rules);
    return list;
}

bool fx_list_shards(PyObject *tuple, const void **bytes, size_t *n_bytes)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(tuple); i++) {
        char *data;
        Py_ssize_t length;
        if (PyBytes_AsStringAndSize(PyTuple_GetItem(tuple, i), &data, &length) < 0) {
            return false;
        }
        bytes[i] = data;
        n_bytes[i] = (size_t)length;
    }
    return true;
}

PyObject *fx_merge_reports_function(PyObject *module, PyObject *shards)
{
    PyObject *tuple = PySequence_Tuple(shards);
    if (tuple == NULL) {
        return NULL;
    }
    size_t n = (size_t)PyTuple_Size(tuple);
    const void **bytes = PyMem_Calloc(n + 1, sizeof *bytes);
    size_t *n_bytes = PyMem_Calloc(n + 1, sizeof *n_bytes);
    fxtap_report *report = NULL;
    fxtap_status status = FXTAP_OK;
    if (bytes == NULL || n_bytes == NULL) {
        PyErr_NoMemory();
    } else if (fx_list_shards(tuple, bytes, n_bytes)) {
        Py_BEGIN_ALLOW_THREADS status = fxtap_report_merge(bytes, n_bytes, n, &report);
        Py_END_ALLOW_THREADS if (status != FXTAP_OK)
        {
            fx_raise(status);
        }
    }
    PyMem_Free(bytes);
    PyMem_Free(n_bytes);
    Py_DECREF(tuple);
    return report == NULL ? NULL : fx_report_new(fx_state_of_module(module), report);
}
