/*
 * python.h - values of a graph record as Python source text that evaluates to exactly the same values.
 *
 * Records are not trusted: names that are not identifiers are replaced, targets must be dotted names, and texts are
 * literals in which everything that could end them is escaped.
 */
#ifndef FX_GRAPH_PYTHON_H
#define FX_GRAPH_PYTHON_H

#include "graph/record.h"
#include "util/arena.h"
#include "util/output.h"

/* A str literal. Lone surrogates are escaped; a byte that is not UTF-8 is escaped as by os.fsdecode() ("\udcff"). */
void fx_python_string(fxtap_buffer *out, const char *bytes, size_t length);
void fx_python_bytes(fxtap_buffer *out, const void *bytes, size_t length);
/* A literal, or a call such as float("nan"). */
void fx_python_float(fxtap_buffer *out, double value);
void fx_python_complex(fxtap_buffer *out, double real, double imag);
/* A decimal integer of any length: Python reads at most 4300 digits at once. */
void fx_python_bigint(fxtap_buffer *out, const char *digits);

void fx_base64(fxtap_buffer *out, const void *data, size_t n_bytes); /* RFC 4648, padded */

/* ASCII letters, digits and "_"; not a keyword. */
bool fx_python_is_identifier(const char *name, size_t length);
/* Identifiers joined by dots; only the first one must not be a keyword. */
bool fx_python_is_dotted(const char *name);

/*
 * Whether the runnable text of a graph may call a function by this dotted name. A record may come from anybody, so only
 * torch's registered operators ("torch.ops.aten.add.Tensor") and fixed lists of arithmetic in operator, math, builtins
 * and torch are allowed. None of them executes its arguments.
 */
bool fx_python_may_call(const char *target);
/* Whether it may call a method of this name, on any object. */
bool fx_python_may_call_method(const char *name);

/* Text in a comment or a label: control characters, line ends and bad bytes as \xNN; at most `limit` bytes of it. */
void fx_plain_text(fxtap_buffer *out, const char *text, size_t limit);

/* The type of a result, from a value of kind TENSOR, SYMINT, LIST ...: "float32[s77, 4] npu:0"; "" for no value. */
void fx_type_text(fxtap_buffer *out, const fxtap_graph *graph, fxtap_value meta);

/* A variable for each node: its name if it is an identifier and free, else a similar one. */
typedef struct fx_names {
    fx_arena arena;
    fx_texts reserved; /* names that nodes must not have */
    const char **names;
} fx_names;

#define FX_GRAPH_PREFIX "_graph_" /* prefix of the names of subgraphs; no node may have it */

/* `reserved` ends with NULL; first parts of dotted targets are reserved too. False: out of memory; clear it anyway. */
bool fx_names_init(fx_names *names, const fxtap_graph *graph, const char *const *reserved);
void fx_names_clear(fx_names *names);

#endif
