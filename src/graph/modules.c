/* modules.c - the tree of modules of a graph. */
#include "graph/modules.h"

#include <string.h>

#include "util/memory.h"

/* Length of the first part of a path. */
static size_t part_length(const char *path)
{
    unsigned depth = 0;
    size_t i = 0;
    for (; path[i] != '\0'; i++) {
        if (path[i] == '[') {
            depth++;
        } else if (path[i] == ']' && depth > 0) {
            depth--;
        } else if (path[i] == '.' && depth == 0) {
            break;
        }
    }
    return i;
}

/* Adds a module and returns its index; 0: out of memory. */
static uint32_t add_child(fx_modules *m, uint32_t parent, const fx_module *module)
{
    if (!fx_grow((void **)&m->modules, &m->capacity, m->n_modules + 1, sizeof *m->modules)) {
        return 0;
    }
    uint32_t number = (uint32_t)m->n_modules++;
    m->modules[number] = *module;
    m->modules[number].parent = parent;
    if (m->modules[parent].last_child != 0) {
        m->modules[m->modules[parent].last_child].next = number;
    } else {
        m->modules[parent].first_child = number;
    }
    m->modules[parent].last_child = number;
    return number;
}

/* Finds the module of a path, added if new; false: out of memory. */
static bool find_module(fx_modules *m, const char *path, uint32_t *out)
{
    const char *at = path;
    if (strncmp(at, "L['self']", 9) == 0 && (at[9] == '.' || at[9] == '\0')) {
        at += at[9] == '.' ? 10 : 9;
    }
    uint32_t module = 0;
    for (unsigned depth = 1; *at != '\0'; depth++) {
        size_t length = depth < FX_MODULE_DEPTH_MAX ? part_length(at) : strlen(at);
        size_t path_bytes = (size_t)(at - path) + length;
        const fx_texts_entry *known = fx_texts_add(&m->paths, path, path_bytes);
        if (known == NULL) {
            return false;
        }
        uint32_t child = known->id + 1; /* modules and paths have the same indices */
        if (child == m->n_modules) {
            fx_module new_one = {.name = at, .name_length = length, .path = path, .path_length = path_bytes};
            if (add_child(m, module, &new_one) == 0) {
                return false;
            }
        }
        module = child;
        at += length;
        at += *at == '.';
    }
    *out = module;
    return true;
}

bool fx_modules_init(fx_modules *m, const fxtap_graph *graph)
{
    memset(m, 0, sizeof *m);
    m->of_node = fx_calloc(graph->n_nodes, sizeof *m->of_node);
    if (m->of_node == NULL || !fx_grow((void **)&m->modules, &m->capacity, 1, sizeof *m->modules)) {
        return false;
    }
    m->modules[0] = (fx_module){.name = "", .path = ""};
    m->n_modules = 1;
    for (size_t i = 0; i < graph->n_nodes; i++) {
        const fxtap_node_desc *desc = &graph->nodes[i].desc;
        const char *before = i == 0 ? NULL : graph->nodes[i - 1].desc.module_path;
        if (desc->module_path != NULL && desc->module_path == before) {
            m->of_node[i] = m->of_node[i - 1]; /* interned: the same text */
        } else if (desc->module_path != NULL && !find_module(m, desc->module_path, &m->of_node[i])) {
            return false;
        }
        if (desc->module_path != NULL && m->modules[m->of_node[i]].type == NULL) {
            m->modules[m->of_node[i]].type = desc->module_type;
        }
    }
    return true;
}

void fx_modules_clear(fx_modules *m)
{
    fx_free(m->modules);
    fx_free(m->of_node);
    fx_texts_clear(&m->paths);
    memset(m, 0, sizeof *m);
}
