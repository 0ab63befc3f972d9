/*
 * The GE graph as a TensorFlow GraphDef in text: one node per operator. Data without a TensorFlow equivalent is a
 * string in the text format: attributes under their names, descriptions as "[i]NAME" and "[o]NAME". Bodies of cond,
 * while_loop and map are functions of the library, named by their paths; an attribute of the operator names the
 * function.
 */
#include <string.h>

#include "ge/ge.h"
#include "util/buffer.h"

/* Escapes these quotes and everything unprintable; a newline is "\n". */
static void escaped(fxtap_buffer *out, const char *bytes, size_t length, char quote)
{
    size_t plain = 0;
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c >= 0x20 && c < 0x7f && c != (unsigned char)quote && c != '\\') {
            continue;
        }
        fx_buffer_put(out, bytes + plain, i - plain);
        plain = i + 1;
        if (c == '\n') {
            fx_buffer_put(out, "\\n", 2);
        } else if (c == '\\' || c == (unsigned char)quote) {
            char pair[2] = {'\\', (char)c};
            fx_buffer_put(out, pair, 2);
        } else {
            fxtap_buffer_printf(out, "\\%03o", c);
        }
    }
    fx_buffer_put(out, bytes + plain, length - plain);
}

static void string_line(fxtap_buffer *out, const char *key, const char *text)
{
    fxtap_buffer_printf(out, "    %s: \"", key);
    escaped(out, text, strlen(text), '"');
    fx_buffer_put(out, "\"\n", 2);
}

static void attr(fxtap_buffer *out, const char *prefix, const char *name, const fxtap_buffer *value)
{
    fx_buffer_put_text(out, "    attr {\n        key: \"");
    fx_buffer_put_text(out, prefix);
    escaped(out, name, strlen(name), '"');
    fx_buffer_put_text(out, "\"\n        value {\n            s: '");
    escaped(out, value->bytes, value->length, '\'');
    fx_buffer_put_text(out, "'\n        }\n    }\n");
}

/* `text` is a buffer for the text of one value; its status is checked at the end. */
static void descs(fxtap_buffer *out, fxtap_buffer *text, const char *prefix, const fx_ge_desc *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        text->length = 0;
        fx_txt_desc(text, 0, &list[i]);
        attr(out, prefix, list[i].name, text);
    }
}

static void function_attr(fxtap_buffer *out, const fx_ge_attr *value)
{
    fx_buffer_put_text(out, "    attr {\n        key: \"");
    escaped(out, value->name, strlen(value->name), '"');
    fx_buffer_put_text(out, "\"\n        value {\n            func {\n                name: \"");
    escaped(out, value->value.u.body->path, strlen(value->value.u.body->path), '"');
    fx_buffer_put_text(out, "\"\n            }\n        }\n    }\n");
}

static void print_node(fxtap_buffer *out, fxtap_buffer *text, const char *field, const fx_ge_op *op)
{
    fx_buffer_put_text(out, field);
    fx_buffer_put_text(out, " {\n");
    string_line(out, "name", op->name);
    string_line(out, "op", op->type);
    for (size_t i = 0; i < op->n_inputs; i++) {
        const fx_ge_op *producer = op->inputs[i].op;
        if (producer == NULL) {
            fx_buffer_put_text(out, "    input: \"\"\n");
            continue;
        }
        fx_buffer_put_text(out, "    input: \"");
        escaped(out, producer->name, strlen(producer->name), '"');
        fxtap_buffer_printf(out, ":%d\"\n", op->inputs[i].output);
    }
    for (size_t i = 0; i < op->n_attrs; i++) {
        if (op->attrs[i].kind == FX_ATTR_GRAPH) {
            function_attr(out, &op->attrs[i]);
            continue;
        }
        text->length = 0;
        fx_txt_attr_value(text, 0, op, &op->attrs[i]);
        attr(out, "", op->attrs[i].name, text);
    }
    descs(out, text, "[i]", op->input_descs, strcmp(op->type, "Data") == 0 ? 1 : op->n_inputs);
    descs(out, text, "[o]", op->outputs, op->n_outputs);
    fx_buffer_put_text(out, "}\n");
}

/* The bodies of a graph, each followed by its own bodies. Depth: at most FX_GRAPH_DEPTH_MAX. */
static void print_functions(fxtap_buffer *out, fxtap_buffer *text, const fx_ge_graph *graph)
{
    for (size_t i = 0; i < graph->n_bodies; i++) {
        const fx_ge_body *body = &graph->bodies[i];
        if (body->graph == NULL) {
            continue;
        }
        fx_buffer_put_text(out, "function {\nsignature {\n");
        string_line(out, "name", body->path);
        fx_buffer_put_text(out, "}\n");
        for (size_t j = 0; j < body->graph->n_ops; j++) {
            print_node(out, text, "node_def", body->graph->ops[j]);
        }
        fx_buffer_put_text(out, "}\n");
        print_functions(out, text, body->graph);
    }
}

void fx_ge_print_pbtxt(const fx_ge_graph *graph, fxtap_buffer *out)
{
    fxtap_buffer text;
    fxtap_buffer_init(&text);
    fx_buffer_put_text(&text, ""); /* bytes from here on */
    for (size_t i = 0; i < graph->n_ops && text.bytes != NULL; i++) {
        print_node(out, &text, "node", graph->ops[i]);
    }
    if (graph->n_bodies > 0) {
        fx_buffer_put_text(out, "library {\n");
        print_functions(out, &text, graph);
        fx_buffer_put_text(out, "}\n");
    }
    if (fxtap_buffer_status(&text) != FXTAP_OK && out->status == FXTAP_OK) {
        out->status = fxtap_buffer_status(&text);
    }
    fxtap_buffer_clear(&text);
}
