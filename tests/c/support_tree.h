/*
 * support_tree.h - temporary folders for tests, in the working directory.
 */
#ifndef SUPPORT_TREE_H
#define SUPPORT_TREE_H

#include <stddef.h>

/* Creates an empty folder and returns its absolute path, which is passed to tree_remove(). */
char *tree_create(void);
void tree_remove(char *path);

/* cmocka's set-up and tear-down for tests that have one folder each, tree_root. */
extern char *tree_root;
int tree_make_root(void **state);
int tree_remove_root(void **state);

/* Returns "root/format..." in one of eight buffers that are used in turn. */
const char *tree_path(const char *root, const char *format, ...) __attribute__((format(printf, 2, 3)));

void tree_mkdir(const char *path); /* with its parents */
void tree_write(const char *path, const void *bytes, size_t n_bytes);
/* A 1-d float32 .npy file. */
void tree_write_floats(const char *path, const float *values, size_t n_values);
void tree_unpack(const char *archive, const char *root);
void tree_copy(const char *from, const char *to);

#endif
