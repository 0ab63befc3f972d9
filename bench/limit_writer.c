/*
 * The limit for a dump: a minimal single-threaded program that writes given bytes to files and makes links, with a
 * dump's guarantee (everything in a partial folder, renamed at the end). No statistics, hashes or index.
 *
 *     limit_writer MANIFEST FOLDER
 *
 * Lines of the manifest: `W SOURCE NAME` writes the bytes of the file SOURCE (read before the clock starts), and
 * `L FIRST NAME` links to FIRST, a NAME above or an absolute path. No name has a space. Prints the seconds taken.
 * Standalone: cc -O2 -D_GNU_SOURCE limit_writer.c
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct item {
    char *from; /* NULL if bytes are written */
    char *name;
    char *bytes;
    size_t n_bytes;
} item;

static void fail(const char *what, const char *path)
{
    fprintf(stderr, "limit_writer: cannot %s %s: %s\n", what, path, strerror(errno));
    exit(2);
}

static void *take(size_t n_bytes)
{
    void *memory = malloc(n_bytes > 0 ? n_bytes : 1);
    if (memory == NULL) {
        fail("get memory for", "the manifest");
    }
    return memory;
}

static void read_source(const char *path, item *into)
{
    struct stat info;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &info) != 0) {
        fail("open", path);
    }
    into->n_bytes = (size_t)info.st_size;
    into->bytes = take(into->n_bytes);
    for (size_t done = 0; done < into->n_bytes;) {
        ssize_t n = read(fd, into->bytes + done, into->n_bytes - done);
        if (n <= 0) {
            fail("read", path);
        }
        done += (size_t)n;
    }
    close(fd);
}

static char *copy(const char *text)
{
    char *made = take(strlen(text) + 1);
    return strcpy(made, text);
}

static size_t read_manifest(const char *path, item **out)
{
    FILE *file = fopen(path, "r");
    size_t n = 0, capacity = 0;
    item *items = NULL;
    char line[16384];
    if (file == NULL) {
        fail("open", path);
    }
    while (fgets(line, sizeof line, file) != NULL) {
        char *save;
        const char *kind = strtok_r(line, " \n", &save);
        const char *source = strtok_r(NULL, " \n", &save);
        const char *name = strtok_r(NULL, " \n", &save);
        if (kind == NULL || source == NULL || name == NULL) {
            errno = EINVAL;
            fail("understand", path);
        }
        if (n == capacity) {
            capacity = capacity > 0 ? 2 * capacity : 1024;
            items = realloc(items, capacity * sizeof *items);
            if (items == NULL) {
                fail("get memory for", path);
            }
        }
        items[n] = (item){.name = copy(name)};
        if (kind[0] == 'W') {
            read_source(source, &items[n]);
        } else {
            items[n].from = copy(source);
        }
        n++;
    }
    fclose(file);
    *out = items;
    return n;
}

static void write_file(int folder, const item *from)
{
    int fd = openat(folder, from->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        fail("create", from->name);
    }
    for (size_t done = 0; done < from->n_bytes;) {
        ssize_t n = write(fd, from->bytes + done, from->n_bytes - done);
        if (n < 0) {
            fail("write", from->name);
        }
        done += (size_t)n;
    }
    close(fd);
}

static double now_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
    char partial[4096];
    item *items;
    if (argc != 3 || (size_t)snprintf(partial, sizeof partial, "%s.partial", argv[2]) >= sizeof partial) {
        fprintf(stderr, "usage: limit_writer MANIFEST FOLDER\n");
        return 2;
    }
    size_t n = read_manifest(argv[1], &items);
    double start = now_seconds();
    if (mkdir(partial, 0777) != 0) {
        fail("make", partial);
    }
    int folder = open(partial, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
        fail("open", partial);
    }
    for (size_t i = 0; i < n; i++) {
        if (items[i].from == NULL) {
            write_file(folder, &items[i]);
        } else if (linkat(folder, items[i].from, folder, items[i].name, 0) != 0) {
            fail("link", items[i].name);
        }
    }
    if (rename(partial, argv[2]) != 0) {
        fail("rename", partial);
    }
    close(folder);
    printf("%.9f\n", now_seconds() - start);
    return 0;
}
