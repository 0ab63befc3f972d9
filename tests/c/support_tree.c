#include "support_tree.h"

#include "support_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fxtap/npy.h"

char *tree_create(void)
{
    char name[] = "tree.XXXXXX";
    assert_non_null(mkdtemp(name));
    char *path = realpath(name, NULL);
    assert_non_null(path);
    return path;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

void tree_remove(char *path)
{
    assert_int_equal(nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
    free(path);
}

const char *tree_path(const char *root, const char *format, ...)
{
    static char buffers[8][PATH_MAX];
    static size_t next;
    char *buffer = buffers[next++ % 8];
    int n = snprintf(buffer, PATH_MAX, "%s/", root);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(buffer + n, PATH_MAX - (size_t)n, format, arguments);
    va_end(arguments);
    return buffer;
}

void tree_mkdir(const char *path)
{
    char part[PATH_MAX];
    for (const char *slash = strchr(path + 1, '/');; slash = strchr(slash + 1, '/')) {
        size_t length = slash != NULL ? (size_t)(slash - path) : strlen(path);
        memcpy(part, path, length);
        part[length] = '\0';
        assert_true(mkdir(part, 0777) == 0 || errno == EEXIST);
        if (slash == NULL) {
            return;
        }
    }
}

static void make_parent(const char *path)
{
    char parent[PATH_MAX];
    size_t length = (size_t)(strrchr(path, '/') - path);
    memcpy(parent, path, length);
    parent[length] = '\0';
    tree_mkdir(parent);
}

void tree_write(const char *path, const void *bytes, size_t n_bytes)
{
    make_parent(path);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n_bytes, file), n_bytes);
    assert_int_equal(fclose(file), 0);
}

void tree_write_floats(const char *path, const float *values, size_t n_values)
{
    int64_t shape[] = {(int64_t)n_values};
    fxtap_view view = {.data = values, .dtype = FXTAP_FLOAT32, .ndim = 1, .shape = shape};
    make_parent(path);
    assert_int_equal(fxtap_npy_save(path, &view), FXTAP_OK);
}

static void run(const char *const arguments[])
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        execvp(arguments[0], (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

void tree_unpack(const char *archive, const char *root)
{
    run((const char *const[]){"tar", "-xzf", archive, "-C", root, NULL});
}

void tree_copy(const char *from, const char *to)
{
    run((const char *const[]){"cp", "-a", from, to, NULL});
}

char *tree_root;

int tree_make_root(void **state)
{
    (void)state;
    tree_root = tree_create();
    return 0;
}

int tree_remove_root(void **state)
{
    (void)state;
    tree_remove(tree_root);
    return 0;
}
