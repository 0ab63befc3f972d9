/*
 * replay.c - a main() for the fuzzing harnesses under compilers without libFuzzer: each argument is a file or a folder.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    struct stat info;
    if (fstat(fileno(file), &info) != 0) {
        perror(path);
        fclose(file);
        return 1;
    }
    size_t size = (size_t)info.st_size;
    uint8_t *data = malloc(size > 0 ? size : 1);
    size_t n_read = data == NULL ? 0 : fread(data, 1, size, file);
    fclose(file);
    if (data == NULL || n_read != size) {
        fprintf(stderr, "%s: cannot be read whole\n", path);
        free(data);
        return 1;
    }
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 0;
}

static int replay_folder(const char *path, DIR *folder, unsigned *n_files)
{
    int failed = 0;
    for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        failed |= replay_file(name);
        (*n_files)++;
    }
    return failed;
}

int main(int argc, char **argv)
{
    int failed = 0;
    unsigned n_files = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (folder != NULL) {
            failed |= replay_folder(argv[i], folder, &n_files);
            closedir(folder);
        } else {
            failed |= replay_file(argv[i]);
            n_files++;
        }
    }
    printf("%u inputs replayed\n", n_files);
    return failed != 0 || n_files == 0;
}
