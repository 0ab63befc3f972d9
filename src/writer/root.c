/* The dump root as an absolute path. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/error.h"
#include "util/memory.h"
#include "writer/root.h"

/* Appends the parts that do not exist: drops empty ones and ".", removes a part for "..". */
static void append_parts(char *path, const char *parts)
{
    while (*parts != '\0') {
        size_t n = strcspn(parts, "/");
        char *end = path + strlen(path);
        if (n == 2 && parts[0] == '.' && parts[1] == '.') {
            char *slash = strrchr(path, '/');
            slash[slash == path ? 1 : 0] = '\0';
        } else if (n > 0 && !(n == 1 && parts[0] == '.')) {
            if (end[-1] != '/') {
                *end++ = '/';
            }
            memcpy(end, parts, n);
            end[n] = '\0';
        }
        parts += n;
        parts += *parts == '/' ? 1 : 0;
    }
}

/* Resolves the longest prefix of `path` that exists; *rest_out is the rest. Errors in it show up when it is used. */
static bool resolve_existing(char *path, char real[PATH_MAX], const char **rest_out)
{
    size_t length = strlen(path);
    for (;;) {
        char kept = path[length];
        path[length] = '\0';
        bool found = realpath(length > 0 ? path : "/", real) != NULL;
        path[length] = kept;
        if (found || length == 0) {
            *rest_out = path + length;
            return found;
        }
        do {
            length--;
        } while (length > 0 && path[length] != '/');
    }
}

fxtap_status fx_root_resolve(const char *path, char **out)
{
    char here[PATH_MAX] = "";
    if (path[0] != '/' && getcwd(here, sizeof here) == NULL) {
        return fx_error_errno(errno, "find the current folder for", path);
    }
    size_t n_bytes = strlen(here) + strlen(path) + 3;
    char *full = fx_calloc(n_bytes, 1);
    char *resolved = fx_calloc(n_bytes + PATH_MAX, 1);
    fxtap_status status = FXTAP_E_NOMEM;
    if (full == NULL || resolved == NULL) {
        goto done;
    }
    if (path[0] != '/') {
        strcpy(full, here);
        strcat(full, "/");
    }
    strcat(full, path);
    const char *rest;
    if (!resolve_existing(full, resolved, &rest)) {
        status = fx_error_errno(errno, "resolve the path", path);
        goto done;
    }
    append_parts(resolved, rest);
    *out = resolved;
    resolved = NULL;
    status = FXTAP_OK;
done:
    fx_free(full);
    fx_free(resolved);
    return status;
}
