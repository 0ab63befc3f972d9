/*
 * glob.h - how patterns select operators: the same for filters, listings, comparisons and graphs.
 */
#ifndef FX_UTIL_GLOB_H
#define FX_UTIL_GLOB_H

#include <stdbool.h>
#include <stdint.h>

#include "util/output.h"

/* An operator of a graph; strings may be NULL. */
typedef struct fx_glob_node {
    const char *name;
    const char *target;
    const char *module_path;
    const char *source_file;
    int32_t source_line;
} fx_glob_node;

/*
 * Whether the pattern matches the node's name, its target, the path of its module, or its source line, "model.py:12"
 * with or without its folders.
 *
 * The module path is matched as written, and without each part of its root: "L['self'].module.fc" is also "module.fc"
 * and "fc". The source line is matched only by a pattern with '/', ':' or ".py" in it: "*linear*" must not match
 * everything that torch/nn/modules/linear.py calls.
 */
bool fx_glob_node_match(const char *pattern, const fx_glob_node *node);

/*
 * The hint for a pattern without a match, from the existing names: ", did you mean fc1?", or ", which has fc2, relu,
 * ..." if no name is similar. A failure is stored in the buffer.
 */
void fx_glob_hint(const char *pattern, const char *const *names, size_t n_names, fxtap_buffer *out);

/* The module path after the first part of its root; NULL if it has no root part. */
const char *fx_glob_after_root(const char *module_path);

#endif
