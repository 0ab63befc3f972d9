/* match.c - patterns that select operators of a dump, and the error if a pattern selects none. */
#include <string.h>

#include "fxtap/output.h"
#include "reader/reader.h"
#include "util/error.h"
#include "util/glob.h"
#include "util/memory.h"

bool fxtap_node_matches(const char *pattern, const fxtap_node_info *node)
{
    return fx_glob_node_match(pattern, &(fx_glob_node){
                                           .name = node->name,
                                           .target = node->target,
                                           .module_path = node->module_path,
                                           .source_file = node->source_file,
                                           .source_line = node->source_line,
                                       });
}

typedef struct name_list {
    const char **items;
    size_t count;
    size_t capacity;
} name_list;

static bool add_name(name_list *names, const char *name)
{
    if (!fx_grow((void **)&names->items, &names->capacity, names->count + 1, sizeof *names->items)) {
        return false;
    }
    names->items[names->count++] = name;
    return true;
}

/* The names of this operator that a pattern could match. */
static bool add_node_names(name_list *names, const fxtap_node_info *node)
{
    const char *path = node->module_path;
    if (node->skipped != NULL && strcmp(node->skipped, "not an operator") == 0) {
        return true;
    }
    for (const char *rest = path; rest != NULL; rest = fx_glob_after_root(path)) {
        path = rest;
    }
    return add_name(names, node->name) && add_name(names, node->target) && (path[0] == '\0' || add_name(names, path));
}

typedef struct search {
    fxtap_reader *reader;
    int64_t run;
    const char *pattern;
    bool with_skipped;
    name_list names;                /* of all operators so far */
    const fxtap_node_info *skipped; /* the first operator that the pattern matches and that is not dumped */
    bool found;
} search;

static fxtap_status look_into(search *s, const fxtap_graph_info *graph)
{
    const fxtap_node_info *const *nodes;
    size_t n_nodes;
    fxtap_status status = fxtap_reader_nodes(s->reader, graph, &nodes, &n_nodes);
    for (size_t i = 0; i < n_nodes && status == FXTAP_OK && !s->found; i++) {
        bool matches = fxtap_node_matches(s->pattern, nodes[i]);
        s->found = matches && (s->with_skipped || nodes[i]->skipped == NULL);
        s->skipped = matches && s->skipped == NULL ? nodes[i] : s->skipped;
        status = add_node_names(&s->names, nodes[i]) ? FXTAP_OK : FXTAP_E_NOMEM;
    }
    return status;
}

static fxtap_status look_at_tensors(search *s)
{
    fxtap_tensor_query query = {.struct_size = sizeof query,
                                .run = s->run,
                                .rank = -1,
                                .graph = -1,
                                .step = -1,
                                .with_incomplete = true,
                                .pattern = s->pattern,
                                .io = -1};
    fxtap_tensor_list *list = NULL;
    fxtap_status status = fxtap_reader_tensors(s->reader, &query, &list);
    if (status == FXTAP_OK) {
        s->found = fxtap_tensor_list_count(list) > 0;
        fxtap_tensor_list_free(list);
    }
    return status;
}

static fxtap_status look(search *s)
{
    const fxtap_graph_info *const *graphs;
    size_t n_graphs;
    fxtap_status status = fxtap_reader_graphs(s->reader, s->run, &graphs, &n_graphs);
    for (size_t i = 0; i < n_graphs && status == FXTAP_OK && !s->found; i++) {
        status = look_into(s, graphs[i]);
    }
    for (size_t i = 0; i < s->reader->n_plain_files && status == FXTAP_OK; i++) {
        status = add_name(&s->names, s->reader->plain_files[i]) ? FXTAP_OK : FXTAP_E_NOMEM;
    }
    return status == FXTAP_OK && !s->found ? look_at_tensors(s) : status;
}

static fxtap_status complain(const search *s)
{
    if (s->skipped != NULL) {
        return fx_error(FXTAP_E_NOT_FOUND, "%s, which \"%s\" matches in %s, is not dumped: %s", s->skipped->name,
                        s->pattern, s->reader->path, s->skipped->skipped);
    }
    fxtap_buffer hint;
    fxtap_buffer_init(&hint);
    fx_glob_hint(s->pattern, s->names.items, s->names.count, &hint);
    fxtap_status status = fx_error(FXTAP_E_NOT_FOUND, "nothing matches \"%s\" in %s%s", s->pattern, s->reader->path,
                                   hint.length == 0 ? "" : hint.bytes);
    fxtap_buffer_clear(&hint);
    return status;
}

fxtap_status fxtap_reader_check_pattern(fxtap_reader *reader, int64_t run, const char *pattern, bool with_skipped)
{
    search s = {.reader = reader, .run = run, .pattern = pattern, .with_skipped = with_skipped};
    fxtap_status status = look(&s);
    if (status == FXTAP_OK && !s.found) {
        status = complain(&s);
    }
    fx_free(s.names.items);
    return status;
}
