/* Several threads load and inspect tensors at the same time, mainly for ThreadSanitizer. */
#include "support_cmocka.h"

#include <pthread.h>
#include <string.h>

#include "fxtap/reader.h"
#include "support_reader.h"
#include "support_tree.h"

#define N_FILES 16
#define N_VALUES 20000
#define N_THREADS 6

typedef struct worker {
    pthread_t thread;
    fxtap_tensor_list *list;
    unsigned number;
    bool is_right;
} worker;

static bool looks_right(const fxtap_tensor_info *info)
{
    bool meta_is_right =
        !info->has_meta || (info->ndim == 1 && info->shape[0] == N_VALUES && info->dtype == FXTAP_FLOAT32);
    bool stats_are_right = !info->has_stats || (info->has_hash && info->stats.count == N_VALUES &&
                                                info->stats.zero_count == 1 && info->stats.max == N_VALUES - 1);
    return meta_is_right && stats_are_right && strstr(info->path, ".npy") != NULL;
}

/* Even threads load, odd threads read. */
static void *work(void *context)
{
    worker *w = context;
    w->is_right = true;
    for (unsigned round = 0; round < 20; round++) {
        for (size_t i = 0; i < N_FILES; i++) {
            fxtap_tensor_info info;
            fxtap_status status = FXTAP_OK;
            if (w->number % 2 == 0) {
                status = round % 2 == 0 ? fxtap_tensor_load_meta(w->list, i) : fxtap_tensor_load_stats(w->list, i);
            }
            w->is_right &=
                status == FXTAP_OK && fxtap_tensor_list_get(w->list, i, &info) == FXTAP_OK && looks_right(&info);
            w->is_right &= w->number % 2 == 1 || info.has_meta;
        }
    }
    return NULL;
}

static void test_load_and_look(void **state)
{
    (void)state;
    static float values[N_VALUES];
    for (size_t i = 0; i < N_VALUES; i++) {
        values[i] = (float)i;
    }
    for (int i = 0; i < N_FILES; i++) {
        tree_write_floats(tree_path(tree_root, "%d.npy", i), values, N_VALUES);
    }
    fxtap_reader *reader = sr_open(tree_root);
    fxtap_tensor_list *list = sr_list(reader, NULL);
    assert_int_equal(fxtap_tensor_list_count(list), N_FILES);
    worker workers[N_THREADS];
    for (unsigned i = 0; i < N_THREADS; i++) {
        workers[i] = (worker){.list = list, .number = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (unsigned i = 0; i < N_THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_true(workers[i].is_right);
    }
    fxtap_tensor_info info;
    assert_int_equal(fxtap_tensor_list_get(list, N_FILES, &info), FXTAP_E_NOT_FOUND);
    fxtap_tensor_list_free(list);
    fxtap_reader_close(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_load_and_look, tree_make_root, tree_remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
