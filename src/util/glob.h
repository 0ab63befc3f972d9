/*
 * glob.h - what a pattern is matched against where it chooses operators: one meaning for filters, listings, comparisons
 * and graphs.
 */
#ifndef FX_UTIL_GLOB_H
#define FX_UTIL_GLOB_H

#include <stdbool.h>
#include <stdint.h>

#include "fxtap/output.h"

/* An operator of a graph; texts may be NULL. */
typedef struct fx_glob_node {
    const char *name;
    const char *target;
    const char *module_path;
    const char *source_file;
    int32_t source_line;
} fx_glob_node;

/*
 * Whether the pattern matches the node's name, its target, the path of its module, or its source line, "model.py:12"
 * with the folders or without.
 *
 * The module path counts as it is written, and without each part of its root: "L['self'].module.fc" is also "module.fc"
 * and "fc". The source line counts only for a pattern that looks like one (with '/', ':' or ".py" in it): "*linear*" is
 * not to match all that torch/nn/modules/linear.py calls.
 */
bool fx_glob_node_match(const char *pattern, const fx_glob_node *node);

/*
 * What to say where a pattern matches nothing, from the names that there are: ", did you mean fc1?", or where none is near
 * ", which has fc2, relu, ...". A failure is kept in the buffer.
 */
void fx_glob_hint(const char *pattern, const char *const *names, size_t n_names, fxtap_buffer *out);

/* The module path after the first part of its root; NULL where it begins with none. */
const char *fx_glob_after_root(const char *module_path);

#endif
