/* folder.c - folder listings, paths and texts in the reader's arena, warnings. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "reader/folder.h"
#include "util/error.h"
#include "util/memory.h"

const char *fx_path_base(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

bool fx_has_suffix(const char *name, const char *suffix)
{
    size_t length = strlen(name), suffix_length = strlen(suffix);
    return length >= suffix_length && memcmp(name + length - suffix_length, suffix, suffix_length) == 0;
}

const char *fx_reader_join(fxtap_reader *reader, const char *folder, const char *name)
{
    size_t folder_length = strlen(folder), name_length = strlen(name);
    bool needs_slash = folder_length > 0 && folder[folder_length - 1] != '/';
    char *path = fx_arena_calloc(&reader->arena, 1, folder_length + name_length + 2);
    if (path == NULL) {
        return NULL;
    }
    memcpy(path, folder, folder_length);
    path[folder_length] = '/';
    memcpy(path + folder_length + (needs_slash ? 1 : 0), name, name_length + 1);
    return path;
}

const char *fx_reader_text(fxtap_reader *reader, const char *text)
{
    return fx_texts_keep(&reader->texts, text, strlen(text));
}

fxtap_status fx_reader_warn(fxtap_reader *reader, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (written < 0) {
        line[0] = '\0';
    }
    fx_texts_entry *entry = fx_texts_add(&reader->texts, line, strlen(line));
    if (entry == NULL) {
        return FXTAP_E_NOMEM;
    }
    if (entry->value != NULL) {
        return FXTAP_OK;
    }
    if (!fx_grow((void **)&reader->warnings, &reader->warnings_capacity, reader->n_warnings + 1,
                 sizeof *reader->warnings)) {
        return FXTAP_E_NOMEM;
    }
    entry->value = reader; /* already warned about */
    reader->warnings[reader->n_warnings++] = entry->text;
    return FXTAP_OK;
}

static unsigned char type_of(int folder_fd, const struct dirent *entry)
{
    if (entry->d_type != DT_UNKNOWN) {
        return entry->d_type;
    }
    struct stat info;
    if (fstatat(folder_fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
        return DT_CHR; /* neither a file, a folder nor a link: ignored */
    }
    return (unsigned char)IFTODT(info.st_mode);
}

static int compare_entries(const void *a, const void *b)
{
    return fx_natural_compare(((const fx_entry *)a)->name, ((const fx_entry *)b)->name);
}

static fxtap_status read_entries(const char *path, DIR *folder, fx_listing *out)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(folder);
        if (entry == NULL) {
            return errno == 0 ? FXTAP_OK : fx_error_errno(errno, "read the folder", path);
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        if (!fx_grow((void **)&out->entries, &out->capacity, out->count + 1, sizeof *out->entries)) {
            return FXTAP_E_NOMEM;
        }
        char *name = fx_text_copy(&out->arena, entry->d_name, strlen(entry->d_name));
        if (name == NULL) {
            return FXTAP_E_NOMEM;
        }
        out->entries[out->count++] = (fx_entry){.name = name, .type = type_of(dirfd(folder), entry)};
    }
}

fxtap_status fx_listing_read(const char *path, fx_listing *out)
{
    DIR *folder = opendir(path);
    if (folder == NULL) {
        return fx_error_errno(errno, "open the folder", path);
    }
    fx_listing listing = {0};
    fxtap_status status = read_entries(path, folder, &listing);
    closedir(folder);
    if (status != FXTAP_OK) {
        fx_listing_clear(&listing);
        return status;
    }
    if (listing.count > 1) {
        qsort(listing.entries, listing.count, sizeof *listing.entries, compare_entries);
    }
    *out = listing;
    return FXTAP_OK;
}

bool fx_error_may_pass(void)
{
    int error_number = fxtap_error_errno();
    return error_number == EMFILE || error_number == ENFILE || error_number == ENOMEM || error_number == EAGAIN ||
           error_number == EINTR;
}

fxtap_status fx_reader_leave_out(fxtap_reader *reader)
{
    if (fx_error_may_pass()) {
        return FXTAP_E_IO;
    }
    bool is_gone = fxtap_error_errno() == ENOENT; /* renamed or removed since its name was read */
    if (!is_gone && reader->left_out.status == FXTAP_OK) {
        fx_error_save(FXTAP_E_IO, &reader->left_out);
    }
    return fx_reader_warn(reader, "%s", fxtap_error_message());
}

void fx_listing_clear(fx_listing *listing)
{
    fx_free(listing->entries);
    fx_arena_clear(&listing->arena);
    *listing = (fx_listing){0};
}
