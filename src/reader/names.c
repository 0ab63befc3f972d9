/* names.c - a step without index rows, read by its file names. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "reader/folder.h"
#include "reader/names.h"
#include "util/error.h"
#include "util/memory.h"

/* ---- the files of a folder ---- */

typedef struct found_file {
    const char *name;
    fx_name parsed;
} found_file;

static int compare_files(const void *a, const void *b)
{
    const found_file *x = a, *y = b;
    if (x->parsed.stamp_us != y->parsed.stamp_us) {
        return x->parsed.stamp_us < y->parsed.stamp_us ? -1 : 1;
    }
    return fx_natural_compare(x->name, y->name);
}

/* Files in the folder that are not an operator's tensors: counted, so that nothing is ignored silently. */
typedef struct leftovers {
    size_t n_foreign;
    const char *foreign; /* the first */
    size_t n_links;
    const char *link;
} leftovers;

static fxtap_status warn_of_leftovers(fxtap_reader *reader, const char *folder, const leftovers *left)
{
    fxtap_status status = FXTAP_OK;
    if (left->n_foreign > 0) {
        status = fx_reader_warn(reader, "%s: %zu .npy file%s not named like an operator's tensor, such as %s", folder,
                                left->n_foreign, left->n_foreign == 1 ? "" : "s", left->foreign);
    }
    if (status == FXTAP_OK && left->n_links > 0) {
        status = fx_reader_warn(reader, "%s: %zu symbolic link%s not followed, such as %s", folder, left->n_links,
                                left->n_links == 1 ? "" : "s", left->link);
    }
    return status;
}

/* `files` has space for every entry; `n_bytes_out`: total size of the names. */
static size_t pick_files(const fx_listing *listing, found_file *files, size_t *n_bytes_out, leftovers *left)
{
    size_t n_files = 0;
    for (size_t i = 0; i < listing->count; i++) {
        const fx_entry *entry = &listing->entries[i];
        if (!fx_has_suffix(entry->name, ".npy")) {
            continue;
        }
        if (entry->type == DT_LNK) {
            left->link = left->n_links++ == 0 ? entry->name : left->link;
        } else if (entry->type == DT_REG) {
            size_t length = strlen(entry->name);
            files[n_files].name = entry->name;
            if (fx_name_parse(entry->name, length, &files[n_files].parsed)) {
                *n_bytes_out += length + 1;
                n_files++;
            } else {
                left->foreign = left->n_foreign++ == 0 ? entry->name : left->foreign;
            }
        }
    }
    return n_files;
}

static fxtap_status keep_files(fx_step *step, const found_file *files, size_t n_files, size_t n_name_bytes)
{
    fx_file *kept = fx_alloc(n_files * sizeof *kept + n_name_bytes); /* smaller than the listing */
    if (kept == NULL) {
        return FXTAP_E_NOMEM;
    }
    char *name = (char *)(kept + n_files);
    for (size_t i = 0; i < n_files; i++) {
        size_t length = strlen(files[i].name) + 1;
        kept[i] = (fx_file){.name = memcpy(name, files[i].name, length)};
        name += length;
    }
    step->files = kept;
    step->n_files = n_files;
    return FXTAP_OK;
}

static fxtap_status sort_listing(fxtap_reader *reader, fx_step *step, fx_listing *listing)
{
    leftovers left = {0};
    size_t n_name_bytes = 0;
    found_file *files = fx_arena_calloc(&listing->arena, listing->count, sizeof *files);
    if (files == NULL) {
        return FXTAP_E_NOMEM;
    }
    size_t n_files = pick_files(listing, files, &n_name_bytes, &left);
    if (n_files > 1) {
        qsort(files, n_files, sizeof *files, compare_files);
    }
    fxtap_status status = keep_files(step, files, n_files, n_name_bytes);
    return status != FXTAP_OK ? status : warn_of_leftovers(reader, step->info.folder, &left);
}

static fxtap_status list_files(fxtap_reader *reader, fx_step *step)
{
    fx_listing listing = {0};
    fxtap_status status = fx_listing_read(step->info.folder, &listing);
    if (status == FXTAP_E_IO) {
        return fx_reader_leave_out(reader);
    }
    if (status == FXTAP_OK) {
        status = sort_listing(reader, step, &listing);
    }
    fx_listing_clear(&listing);
    return status;
}

void fx_step_drop_files(fx_step *step)
{
    fx_free(step->files);
    step->files = NULL;
    step->n_files = 0;
    step->is_read = false;
}

/* ---- nodes ---- */

static fx_node *create_node(fxtap_reader *reader, fx_graph *graph, const char *name, const fx_name *parsed)
{
    fx_node *node = fx_arena_calloc(&reader->arena, 1, sizeof *node);
    if (node == NULL) {
        return NULL;
    }
    node->info = (fxtap_node_info){
        .graph = &graph->info,
        .name = fx_texts_keep(&reader->texts, name, parsed->node_length),
        .target = fx_texts_keep(&reader->texts, name + parsed->target_offset, parsed->target_length),
        .source_file = "",
        .source_function = "",
        .source_code = "",
        .stack = "",
        .module_path = "",
        .module_type = "",
    };
    node->stem = fx_texts_keep(&reader->texts, name, parsed->stem_length);
    node->stem_length = parsed->stem_length;
    return node->info.name != NULL && node->info.target != NULL && node->stem != NULL ? node : NULL;
}

/* Finds the node of a file in the graph, or inserts a new one after the node that ran before it. */
static fx_node *find_or_add_node(fxtap_reader *reader, fx_graph *graph, const char *name, const fx_name *parsed,
                                 fx_node *before)
{
    fx_texts_entry *entry = fx_texts_add(&graph->stems, name, parsed->stem_length);
    if (entry == NULL) {
        return NULL;
    }
    if (entry->value == NULL) {
        fx_node *node = create_node(reader, graph, name, parsed);
        if (node == NULL) {
            return NULL;
        }
        fx_node **link = before != NULL ? &before->next : &graph->first_node;
        node->next = *link;
        *link = node;
        graph->n_nodes++;
        entry->value = node;
    }
    return entry->value;
}

/*
 * All files of one execution of a node share one time stamp, and a node runs once in a step: a node that recurs belongs
 * to another run of the program that was dumped into the same folder.
 */
static void place_in_run(const fx_step *step, fx_file *file, uint64_t stamp_us, unsigned *run)
{
    fx_node *node = file->node;
    if (node->seen_in == step && node->seen_run == *run && node->seen_us != stamp_us) {
        (*run)++;
    }
    node->seen_in = step;
    node->seen_run = *run;
    node->seen_us = stamp_us;
    file->run = *run;
}

static fxtap_status place_files(fxtap_reader *reader, fx_graph *graph, fx_step *step)
{
    fx_node *before = NULL;
    unsigned run = 0;
    uint64_t first_us = 0;
    fx_name parsed = {0};
    for (size_t i = 0; i < step->n_files; i++) {
        fx_file *file = &step->files[i];
        fx_name_parse(file->name, strlen(file->name), &parsed);
        file->node = before = find_or_add_node(reader, graph, file->name, &parsed, before);
        if (before == NULL) {
            return FXTAP_E_NOMEM;
        }
        place_in_run(step, file, parsed.stamp_us, &run);
        first_us = i == 0 ? parsed.stamp_us : first_us;
    }
    if (step->info.started_us == 0) {
        step->info.started_us = first_us;
        step->info.ended_us = parsed.stamp_us;
    }
    step->n_runs = run + 1;
    return FXTAP_OK;
}

fxtap_status fx_step_read_files(fxtap_reader *reader, fx_graph *graph, fx_step *step)
{
    if (step->is_read) {
        return FXTAP_OK;
    }
    fx_step_drop_files(step);
    fxtap_status status = step->is_link ? FXTAP_OK : list_files(reader, step);
    if (status == FXTAP_OK) {
        status = place_files(reader, graph, step);
    }
    if (status != FXTAP_OK) {
        return status;
    }
    step->is_read = true;
    if (step->n_runs > 1) {
        return fx_reader_warn(reader, "%s: contains files of %u runs; reading the latest", step->info.folder,
                              step->n_runs);
    }
    return FXTAP_OK;
}
