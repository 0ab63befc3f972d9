#include "reports.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "text.h"

static const fxtap_report_format formats[N_REPORT_FILES] = {FXTAP_REPORT_JSON, FXTAP_REPORT_CSV, FXTAP_REPORT_HTML};

static size_t count_stdout(const report_files *files)
{
    size_t n = 0;
    for (size_t i = 0; i < N_REPORT_FILES; i++) {
        n += files->paths[i] != NULL && strcmp(files->paths[i], "-") == 0;
    }
    return n;
}

int reports_check(const char *name, const report_files *files, const char *out_path)
{
    if (count_stdout(files) > 1) {
        return usage_error(name, "only one report can go to standard output");
    }
    const char *all[N_REPORT_FILES + 1] = {files->paths[0], files->paths[1], files->paths[2], out_path};
    for (size_t i = 0; i < N_REPORT_FILES + 1; i++) {
        if (all[i] != NULL && strcmp(all[i], "-") != 0 && !may_write(all[i], files->force)) {
            return EXIT_TROUBLE;
        }
    }
    return EXIT_SAME;
}

/* Writes the report in one format to a file or to standard output. */
static int write_one(const report_files *files, report_printer print, const void *report, fxtap_report_format format,
                     const char *path, FILE *notes)
{
    fxtap_buffer text;
    fxtap_buffer_init(&text);
    fxtap_report_options options = {.struct_size = sizeof options, .format = format};
    int result = EXIT_SAME;
    if (print(report, &options, &text) != FXTAP_OK) {
        result = report_library_error();
    } else if (strcmp(path, "-") == 0) {
        result = write_stdout(text.bytes, text.length) ? EXIT_SAME : EXIT_TROUBLE;
    } else if (!write_file(path, text.bytes, text.length, files->force)) {
        result = EXIT_TROUBLE;
    } else {
        fprintf(notes, "Wrote %s\n", path);
    }
    fxtap_buffer_clear(&text);
    return result;
}

static int write_text(const report_files *files, report_printer print, const void *report)
{
    fxtap_report_options options = {.struct_size = sizeof options,
                                    .format = FXTAP_REPORT_TEXT,
                                    .width = text_width() < WIDTH_UNLIMITED ? (int32_t)text_width() : 0,
                                    .colour = text_has_colours(),
                                    .ascii = !text_is_utf8(),
                                    .quiet = files->quiet};
    fxtap_buffer text;
    fxtap_buffer_init(&text);
    int result = EXIT_SAME;
    if (print(report, &options, &text) != FXTAP_OK) {
        result = report_library_error();
    } else if (!write_stdout(text.bytes, text.length)) {
        result = EXIT_TROUBLE;
    }
    fxtap_buffer_clear(&text);
    return result;
}

int reports_write(const report_files *files, report_printer print, const void *report)
{
    bool takes_stdout = count_stdout(files) > 0;
    int result = takes_stdout ? EXIT_SAME : write_text(files, print, report);
    for (size_t i = 0; i < N_REPORT_FILES; i++) {
        if (files->paths[i] != NULL) {
            int written = write_one(files, print, report, formats[i], files->paths[i], takes_stdout ? stderr : stdout);
            result = written > result ? written : result;
        }
    }
    return result;
}

/* ---- shards ---- */

bool read_shard(const char *name, const char *shard, uint32_t *shard_out, uint32_t *n_shards_out)
{
    int64_t k, n;
    char text[32];
    const char *slash = strchr(shard, '/');
    size_t length = slash == NULL ? sizeof text : (size_t)(slash - shard);
    if (length < sizeof text) {
        memcpy(text, shard, length);
        text[length] = '\0';
        if (parse_int64(slash + 1, 1, INT32_MAX, &n) && parse_int64(text, 0, n - 1, &k)) {
            *shard_out = (uint32_t)k;
            *n_shards_out = (uint32_t)n;
            return true;
        }
    }
    usage_error(name, "--shard takes K/N with K from 0 to N-1, not '%s'", shard);
    return false;
}

static fxtap_status read_whole(const char *path, fxtap_buffer *out)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL) {
        return FXTAP_E_IO;
    }
    char block[65536];
    size_t n;
    while ((n = fread(block, 1, sizeof block, file)) > 0) {
        fxtap_buffer_append(out, block, n);
    }
    bool failed = ferror(file) != 0;
    fclose(file);
    return failed ? FXTAP_E_IO : fxtap_buffer_status(out);
}

fxtap_buffer *shards_add(shard_list *shards)
{
    size_t n = shards->count++;
    shards->buffers = must_realloc(shards->buffers, n + 1, sizeof *shards->buffers);
    shards->bytes = must_realloc(shards->bytes, n + 1, sizeof *shards->bytes);
    shards->n_bytes = must_realloc(shards->n_bytes, n + 1, sizeof *shards->n_bytes);
    fxtap_buffer_init(&shards->buffers[n]);
    return &shards->buffers[n];
}

void shards_end(shard_list *shards)
{
    const fxtap_buffer *last = &shards->buffers[shards->count - 1];
    shards->bytes[shards->count - 1] = last->bytes;
    shards->n_bytes[shards->count - 1] = last->length;
}

int shards_read(const char *folder, shard_list *out)
{
    *out = (shard_list){0};
    for (size_t n = 0;; n++) {
        char path[PATH_MAX];
        int length = snprintf(path, sizeof path, "%s/%zu", folder, n);
        if ((size_t)length >= sizeof path) {
            return report_error("cannot read '%s': %s", folder, strerror(ENAMETOOLONG));
        }
        if (access(path, F_OK) != 0) {
            return n > 0 ? EXIT_SAME : report_error("no shards in '%s'", folder);
        }
        if (read_whole(path, shards_add(out)) != FXTAP_OK) {
            return report_error("cannot read '%s': %s", path, strerror(errno));
        }
        shards_end(out);
    }
}

bool shards_verification(const shard_list *shards, fxtap_verification **out)
{
    if (fxtap_verification_merge(shards->bytes, shards->n_bytes, shards->count, out) != FXTAP_OK) {
        report_library_error();
        return false;
    }
    if (was_interrupted()) {
        report_error("interrupted: the operators that were not run again are reported as such");
    }
    return true;
}

int verification_status(const fxtap_verification *verification)
{
    bool is_empty = fxtap_verification_count(verification, FXTAP_VERIFY_NOT_REPLAYED) ==
                    fxtap_verification_operator_count(verification);
    return fxtap_verification_is_wrong(verification) ? EXIT_FOUND : is_empty ? EXIT_TROUBLE : EXIT_SAME;
}

void shards_clear(shard_list *shards)
{
    for (size_t i = 0; i < shards->count; i++) {
        fxtap_buffer_clear(&shards->buffers[i]);
    }
    free(shards->buffers);
    free(shards->bytes);
    free(shards->n_bytes);
    *shards = (shard_list){0};
}
