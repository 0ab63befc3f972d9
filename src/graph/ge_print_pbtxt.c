/*
 * The GE graph as a TensorFlow GraphDef in text: one node an operator; what TensorFlow has no place for is kept as
 * strings in the text format, attributes under their names, descriptions as "[i]NAME" and "[o]NAME".
 */
#include <string.h>

#include "graph/ge.h"

/* A string field in single quotes. */
static void quoted(fxtap_buffer *out, const char *bytes, size_t length)
{
    size_t plain = 0;
    fxtap_buffer_text(out, "'");
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)bytes[i];
        if (c >= 0x20 && c < 0x7f && c != '\'' && c != '\\') {
            continue;
        }
        fxtap_buffer_append(out, bytes + plain, i - plain);
        plain = i + 1;
        if (c == '\n') {
            fxtap_buffer_append(out, "\\n", 2);
        } else if (c == '\'' || c == '\\') {
            fxtap_buffer_printf(out, "\\%c", c);
        } else {
            fxtap_buffer_printf(out, "\\%03o", c);
        }
    }
    fxtap_buffer_append(out, bytes + plain, length - plain);
    fxtap_buffer_text(out, "'");
}

static void string_line(fxtap_buffer *out, const char *key, const char *text)
{
    fxtap_buffer_printf(out, "    %s: \"", key);
    for (const char *c = text; *c != 0; c++) {
        unsigned char u = (unsigned char)*c;
        if (u == '"' || u == '\\') {
            fxtap_buffer_printf(out, "\\%c", u);
        } else if (u < 0x20 || u >= 0x7f) {
            fxtap_buffer_printf(out, "\\%03o", u);
        } else {
            fxtap_buffer_append(out, c, 1);
        }
    }
    fxtap_buffer_text(out, "\"\n");
}

static void attr(fxtap_buffer *out, const char *prefix, const char *name, const fxtap_buffer *value)
{
    fxtap_buffer key;
    fxtap_buffer_init(&key);
    fxtap_buffer_printf(&key, "%s%s", prefix, name);
    fxtap_buffer_text(out, "    attr {\n    ");
    string_line(out, "key", key.bytes == NULL ? "" : key.bytes);
    fxtap_buffer_text(out, "        value {\n            s: ");
    quoted(out, value->bytes == NULL ? "" : value->bytes, value->length);
    fxtap_buffer_text(out, "\n        }\n    }\n");
    fxtap_buffer_clear(&key);
}

static void descs(fxtap_buffer *out, const char *prefix, const fx_ge_desc *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        fxtap_buffer text;
        fxtap_buffer_init(&text);
        fx_txt_desc(&text, 0, &list[i]);
        attr(out, prefix, list[i].name, &text);
        fxtap_buffer_clear(&text);
    }
}

static void print_node(fxtap_buffer *out, const fx_ge_op *op)
{
    fxtap_buffer text;
    fxtap_buffer_text(out, "node {\n");
    string_line(out, "name", op->name);
    string_line(out, "op", op->type);
    for (size_t i = 0; i < op->n_inputs; i++) {
        fxtap_buffer_init(&text);
        if (op->inputs[i].op != NULL) {
            fxtap_buffer_printf(&text, "%s:%d", op->inputs[i].op->name, op->inputs[i].output);
        }
        string_line(out, "input", text.bytes == NULL ? "" : text.bytes);
        fxtap_buffer_clear(&text);
    }
    for (size_t i = 0; i < op->n_attrs; i++) {
        fxtap_buffer_init(&text);
        fx_txt_attr_value(&text, 0, op, &op->attrs[i]);
        attr(out, "", op->attrs[i].name, &text);
        fxtap_buffer_clear(&text);
    }
    descs(out, "[i]", op->input_descs, strcmp(op->type, "Data") == 0 ? 1 : op->n_inputs);
    descs(out, "[o]", op->outputs, op->n_outputs);
    fxtap_buffer_text(out, "}\n");
}

void fx_ge_print_pbtxt(const fx_ge_graph *graph, fxtap_buffer *out)
{
    for (size_t i = 0; i < graph->n_ops; i++) {
        print_node(out, graph->ops[i]);
    }
}
