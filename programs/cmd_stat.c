/* cmd_stat.c - fxtap stat: the contents of any .npy file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "describe.h"
#include "fxtap/npy.h"
#include "fxtap/reader.h"
#include "options.h"
#include "text.h"

typedef struct stat_options {
    bool json;
} stat_options;

/* Reads a file as a list of one tensor. */
typedef struct opened {
    fxtap_reader *reader;
    fxtap_tensor_list *list;
    const fxtap_tensor_info *info;
    fxtap_npy *npy;
} opened;

static fxtap_status open_file(const char *path, opened *out)
{
    fxtap_tensor_query query = {.struct_size = sizeof query, .rank = -1, .graph = -1, .step = -1, .io = -1};
    fxtap_status status = fxtap_npy_open(path, &out->npy);
    if (status == FXTAP_OK) {
        status = fxtap_reader_open(path, &out->reader);
    }
    if (status == FXTAP_OK) {
        status = fxtap_reader_tensors(out->reader, &query, &out->list);
    }
    if (status == FXTAP_OK) {
        status = fxtap_tensor_load_stats(out->list, 0);
        if (status == FXTAP_E_UNSUPPORTED && fxtap_npy_view(out->npy)->dtype == FXTAP_STRING) {
            status = FXTAP_OK;
        }
        out->info = fxtap_tensor_list_at(out->list, 0);
    }
    return status;
}

static void close_file(opened *file)
{
    fxtap_npy_close(file->npy);
    fxtap_tensor_list_free(file->list);
    fxtap_reader_close(file->reader);
}

static void append_text_value(fxtap_buffer *out, fxtap_npy *npy)
{
    const char *text;
    if (fxtap_npy_text(npy, &text) == FXTAP_OK) {
        fxtap_buffer_text(out, "  \"");
        text_append(out, text);
        fxtap_buffer_text(out, "\"\n");
    }
}

static void print_file(fxtap_buffer *out, const char *path, const opened *file)
{
    const fxtap_tensor_info *info = file->info;
    text_append_styled(out, STYLE_BOLD, path);
    fxtap_buffer_text(out, "\n  ");
    text_append_type(out, info->dtype, info->shape, info->ndim);
    fxtap_buffer_text(out, "  ");
    text_append(out, fxtap_npy_descr(file->npy));
    fxtap_buffer_printf(out, "  %s-major  ", info->fortran_order ? "column" : "row");
    text_append_bytes(out, info->bytes);
    fxtap_buffer_text(out, "\n");
    if (fxtap_npy_trailing_bytes(file->npy) > 0) {
        fxtap_buffer_printf(out, "  %s%llu bytes follow the data%s\n", text_begin(STYLE_WARN),
                            (unsigned long long)fxtap_npy_trailing_bytes(file->npy), text_end(STYLE_WARN));
    }
    if (info->has_stats) {
        describe_stats(out, "  ", &info->stats);
    } else {
        append_text_value(out, file->npy);
    }
}

static void json_file(fxtap_json *json, const char *path, const opened *file)
{
    const char *text;
    fxtap_json_begin_object(json, NULL);
    fxtap_json_string(json, "path", path);
    fxtap_json_string(json, "descr", fxtap_npy_descr(file->npy));
    describe_tensor_json(json, file->info);
    fxtap_json_uint(json, "trailing_bytes", fxtap_npy_trailing_bytes(file->npy));
    if (!file->info->has_stats && fxtap_npy_text(file->npy, &text) == FXTAP_OK) {
        fxtap_json_string(json, "text", text);
    }
    fxtap_json_end_object(json);
}

static void json_failure(fxtap_json *json, const char *path)
{
    fxtap_json_begin_object(json, NULL);
    fxtap_json_string(json, "path", path);
    fxtap_json_string(json, "error", fxtap_error_message());
    fxtap_json_end_object(json);
}

static int stat_files(char **paths, int n_paths, bool as_json)
{
    fxtap_buffer out;
    fxtap_json json;
    int result = EXIT_SUCCESS;
    fxtap_buffer_init(&out);
    fxtap_json_init(&json, &out, true);
    if (as_json) {
        fxtap_json_begin_array(&json, NULL);
    }
    for (int i = 0; i < n_paths; i++) {
        opened file = {0};
        fxtap_status status = open_file(paths[i], &file);
        if (status != FXTAP_OK) {
            result = report_library_error();
        }
        if (as_json && status != FXTAP_OK) {
            json_failure(&json, paths[i]);
        } else if (as_json) {
            json_file(&json, paths[i], &file);
        } else if (status == FXTAP_OK) {
            print_file(&out, paths[i], &file);
        }
        close_file(&file);
        if (!as_json && !flush_buffer(&out)) {
            return EXIT_TROUBLE;
        }
    }
    if (as_json) {
        fxtap_json_end_array(&json);
        fxtap_buffer_text(&out, "\n");
    }
    return flush_buffer(&out) ? result : EXIT_TROUBLE;
}

int cmd_stat(int argc, char **argv)
{
    stat_options chosen = {0};
    const option_spec options[] = {
        {0, "json", OPTION_FLAG, &chosen.json, NULL, "one JSON array with an object per file"},
    };
    const command_usage usage = {
        .command = "stat",
        .operands = "FILE...",
        .about = "Print dtype, shape, order and statistics of .npy files. Files are not trusted,\n"
                 "and nothing is unpickled.\n",
        .options = options,
        .n_options = sizeof options / sizeof *options,
        .more = "Exit status: 0; 2 if a file could not be read (the others are shown).\n",
    };
    int first, status;
    if (!options_parse(&usage, argc, argv, &first, &status)) {
        return status;
    }
    if (first == argc) {
        return usage_error(usage.command, "expected a FILE");
    }
    return stat_files(argv + first, argc - first, chosen.json);
}
