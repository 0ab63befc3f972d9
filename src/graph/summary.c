/*
 * summary.c - the operators of a graph as a CSV, one row per target, in TorchAir's format: signatures are Python's repr
 * of the arguments, with a tensor as dtype(shape): "2次：(float32(4, 8), 1.5)".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fxtap/print.h"
#include "graph/python.h"
#include "graph/support.h"
#include "util/error.h"
#include "util/memory.h"

extern const char fx_operators[];
extern const size_t fx_operators_bytes;

/* ---- support ---- */

fx_support fx_support_of(const char *target)
{
    size_t length = strlen(target);
    size_t low = 0; /* the start of a line */
    size_t high = fx_operators_bytes;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        while (middle > low && fx_operators[middle - 1] != '\n') {
            middle--;
        }
        const char *line = fx_operators + middle;
        size_t name_length = strcspn(line, "\t");
        size_t common = name_length < length ? name_length : length;
        int order = memcmp(target, line, common);
        order = order != 0 ? order : (length > name_length) - (length < name_length);
        if (order == 0) {
            char c = line[name_length + 1];
            return c == 'w' ? FX_SUPPORT_WHOLE : c == 'p' ? FX_SUPPORT_PARTIAL : FX_SUPPORT_NONE;
        }
        if (order < 0) {
            high = middle;
        } else {
            low = middle + strcspn(line, "\n") + 1;
        }
    }
    return FX_SUPPORT_UNKNOWN;
}

/* ---- signatures ---- */

static void put_value(fxtap_buffer *out, const fxtap_graph *graph, fxtap_value value, bool within_result);

static void put_items(fxtap_buffer *out, const fxtap_graph *graph, const fxtap_value *items, size_t n_items,
                      bool within_result)
{
    for (size_t i = 0; i < n_items; i++) {
        fxtap_buffer_text(out, i == 0 ? "" : ", ");
        put_value(out, graph, items[i], within_result);
    }
}

static void put_tuple(fxtap_buffer *out, const fxtap_graph *graph, const fxtap_value *items, size_t n_items,
                      bool within_result)
{
    fxtap_buffer_text(out, "(");
    put_items(out, graph, items, n_items, within_result);
    fxtap_buffer_text(out, n_items == 1 ? ",)" : ")");
}

/* "device(type='npu', index=1)" */
static void put_device(fxtap_buffer *out, const char *device)
{
    size_t length = strcspn(device, ":");
    fxtap_buffer_text(out, "device(type=");
    fx_python_string(out, device, length);
    if (device[length] == ':') {
        fxtap_buffer_printf(out, ", index=%s", device + length + 1);
    }
    fxtap_buffer_text(out, ")");
}

static void put_dict(fxtap_buffer *out, const fxtap_graph *graph, const fx_value_row *row, bool within_result)
{
    fxtap_buffer_text(out, "{");
    for (uint32_t i = 0; i + 1 < row->index; i += 2) {
        fxtap_buffer_text(out, i == 0 ? "" : ", ");
        put_value(out, graph, row->as.items[i], within_result);
        fxtap_buffer_text(out, ": ");
        put_value(out, graph, row->as.items[i + 1], within_result);
    }
    fxtap_buffer_text(out, "}");
}

static void put_tensor(fxtap_buffer *out, const fxtap_graph *graph, const fxtap_tensor_meta *meta)
{
    fxtap_buffer_text(out, fxtap_dtype_name(meta->dtype));
    put_tuple(out, graph, meta->shape, meta->n_dims, true);
}

/*
 * A node among the arguments is printed as its result, a node within that as its name: no chain of nodes is followed.
 * Depth: at most twice FX_VALUE_DEPTH_MAX.
 */
static void put_value(fxtap_buffer *out, const fxtap_graph *graph, fxtap_value value, bool within_result)
{
    const fx_value_row *row = fx_graph_value(graph, value);
    switch (row->kind) {
    case FXTAP_V_NODE:
        if (!within_result && fx_graph_value(graph, graph->nodes[row->index].desc.meta)->kind != 0) {
            put_value(out, graph, graph->nodes[row->index].desc.meta, true);
        } else {
            fxtap_buffer_text(out, graph->nodes[row->index].desc.name);
        }
        break;
    case FXTAP_V_TENSOR:
        put_tensor(out, graph, &graph->tensors[row->index]);
        break;
    case FXTAP_V_BOOL:
        fxtap_buffer_text(out, row->flag ? "True" : "False");
        break;
    case FXTAP_V_INT:
        fxtap_buffer_printf(out, "%lld", (long long)row->as.integer);
        break;
    case FXTAP_V_FLOAT:
        fxtap_buffer_double(out, row->number);
        break;
    case FXTAP_V_COMPLEX:
        fx_python_complex(out, row->number, row->as.imag);
        break;
    case FXTAP_V_STRING:
        fx_python_string(out, row->as.text, fx_texts_entry_of(row->as.text)->length);
        break;
    case FXTAP_V_BYTES:
        fx_python_bytes(out, row->as.text, fx_texts_entry_of(row->as.text)->length);
        break;
    case FXTAP_V_DEVICE:
        put_device(out, row->as.text);
        break;
    case FXTAP_V_LIST:
        fxtap_buffer_text(out, "[");
        put_items(out, graph, row->as.items, row->index, within_result);
        fxtap_buffer_text(out, "]");
        break;
    case FXTAP_V_TUPLE:
        put_tuple(out, graph, row->as.items, row->index, within_result);
        break;
    case FXTAP_V_DICT:
        put_dict(out, graph, row, within_result);
        break;
    case FXTAP_V_SLICE:
        fxtap_buffer_text(out, "slice");
        put_tuple(out, graph, row->as.items, row->index, within_result);
        break;
    case FXTAP_V_ELLIPSIS:
        fxtap_buffer_text(out, "Ellipsis");
        break;
    case FXTAP_V_GRAPH:
        fxtap_buffer_text(out, "GraphModule()");
        break;
    case 0:
    case FXTAP_V_NONE:
        fxtap_buffer_text(out, "None");
        break;
    default:
        fxtap_buffer_text(out, row->as.text);
        break;
    }
}

static void put_inputs(fxtap_buffer *out, const fxtap_graph *graph, const fxtap_node_desc *desc)
{
    put_tuple(out, graph, desc->args, desc->n_args, false);
    for (size_t i = 0; i < desc->n_kwargs; i++) {
        fxtap_buffer_text(out, i == 0 ? ", {" : ", ");
        fx_python_string(out, desc->kwarg_names[i], strlen(desc->kwarg_names[i]));
        fxtap_buffer_text(out, ": ");
        put_value(out, graph, desc->kwarg_values[i], false);
    }
    fxtap_buffer_text(out, desc->n_kwargs > 0 ? "}" : "");
}

/* ---- the size of the text ---- */

#define SUMMARY_WEIGHT_TIMES 8 /* the limit of a walk: results of nodes are written at every reference */

typedef struct extent {
    const fxtap_graph *graph;
    uint64_t weight, most;
} extent;

static bool add_result(void *context, fxtap_node input)
{
    extent *e = context;
    e->weight += fx_graph_value(e->graph, e->graph->nodes[input].desc.meta)->weight;
    return e->weight <= e->most;
}

/* The record bounds the arguments themselves; the results of nodes among them are written for each reference. */
static fxtap_status check_extent(const fxtap_graph *graph)
{
    extent e = {.graph = graph, .most = SUMMARY_WEIGHT_TIMES * fx_graph_weight_max(graph)};
    for (size_t i = 0; i < graph->n_nodes; i++) {
        if (graph->nodes[i].desc.op == FXTAP_OP_CALL_FUNCTION &&
            !fx_graph_node_refs(graph, (fxtap_node)i, add_result, &e)) {
            return fx_error(FXTAP_E_UNSUPPORTED, "%s: the arguments up to this node are too large for a summary",
                            graph->nodes[i].desc.name);
        }
    }
    return FXTAP_OK;
}

/* ---- counting ---- */

typedef struct signature {
    const char *text; /* interned, with the prefix of its row */
    uint64_t count;
    uint32_t next; /* of the row, in order of first use; + 1 */
} signature;

typedef struct row {
    const char *target;
    uint64_t count;
    uint32_t first[2], last[2]; /* signatures of inputs and outputs, + 1 */
} row;

typedef struct summary {
    const fxtap_graph *graph;
    fx_texts targets; /* the index of a row is that of its target */
    row *rows;
    size_t n_rows, rows_capacity;
    fx_texts texts; /* the index of a signature is that of its text */
    signature *signatures;
    size_t n_signatures, signatures_capacity;
    fxtap_buffer text;
} summary;

static bool count_signature(summary *s, uint32_t number, int io)
{
    const fx_texts_entry *text = fx_texts_add(&s->texts, s->text.bytes, s->text.length);
    if (text == NULL || fxtap_buffer_status(&s->text) != FXTAP_OK) {
        return false;
    }
    uint32_t id = text->id;
    if (id == s->n_signatures) {
        if (!fx_grow((void **)&s->signatures, &s->signatures_capacity, s->n_signatures + 1, sizeof *s->signatures)) {
            return false;
        }
        s->signatures[s->n_signatures++] = (signature){.text = text->text};
        row *r = &s->rows[number];
        *(r->last[io] == 0 ? &r->first[io] : &s->signatures[r->last[io] - 1].next) = id + 1;
        r->last[io] = id + 1;
    }
    s->signatures[id].count++;
    return true;
}

/* The signature of inputs (0) or outputs (1), with a prefix that separates the rows. */
static bool take_signature(summary *s, uint32_t number, int io, const fxtap_node_desc *desc)
{
    fxtap_buffer_clear(&s->text);
    fxtap_buffer_printf(&s->text, "%u %d ", (unsigned)number, io);
    if (io == 0) {
        put_inputs(&s->text, s->graph, desc);
    } else {
        put_value(&s->text, s->graph, desc->meta, true);
    }
    return count_signature(s, number, io);
}

static bool take_node(summary *s, const fxtap_node_desc *desc)
{
    const fx_texts_entry *target = fx_texts_add(&s->targets, desc->target, strlen(desc->target));
    if (target == NULL) {
        return false;
    }
    uint32_t number = target->id;
    if (number == s->n_rows) {
        if (!fx_grow((void **)&s->rows, &s->rows_capacity, s->n_rows + 1, sizeof *s->rows)) {
            return false;
        }
        s->rows[s->n_rows++] = (row){.target = target->text};
    }
    s->rows[number].count++;
    return take_signature(s, number, 0, desc) && take_signature(s, number, 1, desc);
}

/* ---- writing ---- */

/* C functions of Python, which torch names by their repr: "<built-in function mul>" for "operator.mul". */
static const char *builtin_name(const char *target)
{
    static const char *const modules[] = {"operator.", "math.", "builtins."};
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        size_t length = strlen(modules[i]);
        if (strncmp(target, modules[i], length) == 0 && strchr(target + length, '.') == NULL) {
            return target + length;
        }
    }
    return NULL;
}

static void put_target(fxtap_buffer *out, const char *target)
{
    const char *builtin = builtin_name(target);
    fxtap_buffer field;
    fxtap_buffer_init(&field);
    if (builtin != NULL) {
        fxtap_buffer_printf(&field, "<built-in function %s>", builtin);
    } else {
        fxtap_buffer_text(&field, target);
    }
    fxtap_csv_field(out, field.bytes == NULL ? "" : field.bytes, true);
    fxtap_buffer_clear(&field);
    fxtap_buffer_append(&field, target, strcspn(target, "."));
    fxtap_csv_field(out, builtin != NULL ? "builtin" : field.bytes == NULL ? "" : field.bytes, false);
    out->status = out->status != FXTAP_OK ? out->status : fxtap_buffer_status(&field);
    fxtap_buffer_clear(&field);
}

static const char *support_text(const char *target, bool english)
{
    static const char *const texts[2][4] = {
        {"\xe6\x9c\xaa\xe6\xb3\xa8\xe5\x86\x8c", "\xe6\x9c\xaa\xe5\xae\x9e\xe7\x8e\xb0",
         "\xe9\x83\xa8\xe5\x88\x86\xe6\x94\xaf\xe6\x8c\x81", "\xe5\xb7\xb2\xe6\x94\xaf\xe6\x8c\x81"},
        {"not registered", "not implemented", "partly supported", "supported"}};
    fx_support support = builtin_name(target) != NULL ? FX_SUPPORT_WHOLE : fx_support_of(target);
    return texts[english][support];
}

static int by_count(const void *a, const void *b)
{
    const signature *const *x = a;
    const signature *const *y = b;
    if ((*x)->count != (*y)->count) {
        return (*x)->count > (*y)->count ? -1 : 1;
    }
    return (*x < *y) ? -1 : 1; /* both in one array, in order of first use */
}

/* One field: a line per signature, the most frequent first. */
static bool put_signatures(summary *s, uint32_t first, bool english, fxtap_buffer *out)
{
    size_t n = 0;
    for (uint32_t i = first; i != 0; i = s->signatures[i - 1].next) {
        n++;
    }
    const signature **sorted = fx_calloc(n, sizeof *sorted);
    if (sorted == NULL) {
        return false;
    }
    n = 0;
    for (uint32_t i = first; i != 0; i = s->signatures[i - 1].next) {
        sorted[n++] = &s->signatures[i - 1];
    }
    qsort(sorted, n, sizeof *sorted, by_count);
    fxtap_buffer_clear(&s->text);
    for (size_t i = 0; i < n; i++) {
        const char *text = strchr(strchr(sorted[i]->text, ' ') + 1, ' ') + 1;
        fxtap_buffer_printf(&s->text, "%s%llu%s%s", i == 0 ? "" : "\n", (unsigned long long)sorted[i]->count,
                            english ? "x: " : "\xe6\xac\xa1\xef\xbc\x9a", text);
    }
    fx_free(sorted);
    if (fxtap_buffer_status(&s->text) != FXTAP_OK) {
        return false;
    }
    fxtap_csv_field(out, s->text.bytes, false);
    return true;
}

static void put_head(const fxtap_summary_options *options, fxtap_buffer *out)
{
    static const char *const names[2][6] = {
        {"\xe7\x9b\xae\xe6\xa0\x87\xe5\x87\xbd\xe6\x95\xb0", "\xe5\x87\xbd\xe6\x95\xb0\xe7\xb1\xbb\xe5\x9e\x8b",
         "\xe6\x94\xaf\xe6\x8c\x81\xe7\x8a\xb6\xe6\x80\x81", "\xe8\xb0\x83\xe7\x94\xa8\xe6\xac\xa1\xe6\x95\xb0",
         "\xe8\xbe\x93\xe5\x85\xa5\xe7\xbb\x9f\xe8\xae\xa1", "\xe8\xbe\x93\xe5\x87\xba\xe7\xbb\x9f\xe8\xae\xa1"},
        {"target", "kind", "support", "calls", "inputs", "outputs"}};
    fxtap_buffer_text(out, options->no_mark ? "" : "\xef\xbb\xbf");
    for (size_t i = 0; i < 6; i++) {
        fxtap_csv_field(out, names[options->english][i], i == 0);
    }
    fxtap_csv_end_row(out);
}

static bool put_row(summary *s, const row *r, bool english, fxtap_buffer *out)
{
    char count[24];
    snprintf(count, sizeof count, "%llu", (unsigned long long)r->count);
    put_target(out, r->target);
    fxtap_csv_field(out, support_text(r->target, english), false);
    fxtap_csv_field(out, count, false);
    bool ok = put_signatures(s, r->first[0], english, out) && put_signatures(s, r->first[1], english, out);
    fxtap_csv_end_row(out);
    return ok;
}

fxtap_status fxtap_graph_summary(const fxtap_graph *graph, const fxtap_summary_options *options, fxtap_buffer *out)
{
    FX_REQUIRE(graph);
    FX_REQUIRE(options);
    FX_REQUIRE(out);
    if (options->struct_size != sizeof *options) {
        return fx_error(FXTAP_E_INVALID, "unknown struct_size %zu", options->struct_size);
    }
    fxtap_status status = check_extent(graph);
    if (status != FXTAP_OK) {
        return status;
    }
    summary s = {.graph = graph};
    fxtap_buffer_init(&s.text);
    bool ok = true;
    for (size_t i = 0; ok && i < graph->n_nodes; i++) {
        const fxtap_node_desc *desc = &graph->nodes[i].desc;
        ok = desc->op != FXTAP_OP_CALL_FUNCTION || take_node(&s, desc);
    }
    put_head(options, out);
    for (size_t i = 0; ok && i < s.n_rows; i++) {
        ok = put_row(&s, &s.rows[i], options->english, out);
    }
    fxtap_buffer_clear(&s.text);
    fx_texts_clear(&s.targets);
    fx_texts_clear(&s.texts);
    fx_free(s.rows);
    fx_free(s.signatures);
    return ok ? fxtap_buffer_status(out) : fx_error_nomem();
}
