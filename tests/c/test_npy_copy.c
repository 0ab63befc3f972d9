/* Files that change after they were opened: a mapping shows it, a copy does not. */
#include "support_cmocka.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fxtap/npy.h"
#include "support_tree.h"

/* Reads the last value of a file that was truncated after opening, in a separate process; returns its wait status. */
static int read_after_cut(const char *path, uint32_t flags)
{
    static float values[100000];
    values[99999] = 7;
    unlink(path);
    int64_t shape[] = {100000};
    fxtap_view view = {.data = values, .dtype = FXTAP_FLOAT32, .ndim = 1, .shape = shape};
    assert_int_equal(fxtap_npy_save(path, &view), FXTAP_OK);
    pid_t child = fork();
    if (child == 0) {
        fxtap_npy *npy = NULL;
        float last = 0;
        signal(SIGBUS, SIG_DFL); /* sanitisers and cmocka handle the signal */
        bool opened = fxtap_npy_open_with(path, flags, &npy) == FXTAP_OK && truncate(path, 4096) == 0;
        bool is_right = opened && fxtap_view_gather(fxtap_npy_view(npy), 99999, 1, &last) == FXTAP_OK && last == 7;
        _exit(is_right ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void test_a_copy_outlives_its_file(void **state)
{
    (void)state;
    const char *path = tree_path(tree_root, "cut_later.npy");
    int mapped = read_after_cut(path, 0);
    assert_true(WIFSIGNALED(mapped) && WTERMSIG(mapped) == SIGBUS);
    int copied = read_after_cut(path, FXTAP_READ_COPY);
    assert_true(WIFEXITED(copied) && WEXITSTATUS(copied) == 0);
    fxtap_npy *npy = NULL;
    assert_int_equal(fxtap_npy_open_with(path, FXTAP_READ_COPY, &npy),
                     FXTAP_E_FORMAT); /* truncated before it was opened */
    assert_int_equal(fxtap_npy_open_with(path, 2, &npy), FXTAP_E_INVALID);
}

/* Of a large file that is not an .npy file, a copy reads only the beginning. */
static void test_a_foreign_file_is_not_copied(void **state)
{
    (void)state;
    const char *path = tree_path(tree_root, "foreign.npy");
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)1 << 40), 0); /* a hole of a terabyte */
    close(fd);
    fxtap_npy *npy = NULL;
    assert_int_equal(fxtap_npy_open_with(path, FXTAP_READ_COPY, &npy), FXTAP_E_FORMAT);
    assert_non_null(strstr(fxtap_error_message(), "does not begin"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_copy_outlives_its_file, tree_make_root, tree_remove_root),
        cmocka_unit_test_setup_teardown(test_a_foreign_file_is_not_copied, tree_make_root, tree_remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
