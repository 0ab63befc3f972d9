#include "support_cmocka.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <unistd.h>

#include "fxtap/npy.h"
#include "util/file.h"
#include "util/system.h"

static char folder[64];
static char paths[2][128];

static int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/fxtap-test-file-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    snprintf(paths[0], sizeof paths[0], "%s/a", folder);
    snprintf(paths[1], sizeof paths[1], "%s/b", folder);
    return 0;
}

static int remove_folder(void **state)
{
    char command[128];
    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", folder);
    return system(command);
}

static int create(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    return fd;
}

/* Calls of at most 7 bytes: tries every way to split the parts. */
static void test_small_calls(void **state)
{
    (void)state;
    static const char text[] = "one two three four five six seven eight nine";
    for (size_t limit = 1; limit < 12; limit++) {
        char head[] = "one two three";
        char tail[] = " four five six seven eight nine";
        char back[sizeof text] = "";
        struct iovec parts[] = {{NULL, 0}, {head, strlen(head)}, {NULL, 0}, {tail, strlen(tail)}, {NULL, 0}};
        int fd = create(paths[0]);
        fx_file_limit_call(limit);
        assert_int_equal(fx_writev_all(fd, parts, 5, paths[0]), FXTAP_OK);
        assert_int_equal(fx_write_all(fd, text, sizeof text, paths[0]), FXTAP_OK);
        assert_int_equal(fx_pread_all(fd, back, sizeof text - 1, 0, paths[0]), FXTAP_OK);
        assert_string_equal(back, text);
        assert_int_equal(fx_pread_all(fd, back, sizeof text, sizeof text - 1, paths[0]), FXTAP_OK);
        fx_file_limit_call(0);
        assert_string_equal(back, text);
        close(fd);
    }
    unlink(paths[0]);
}

static void test_many_parts(void **state)
{
    (void)state;
    struct iovec parts[300];
    char byte[] = "x";
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        parts[i] = (struct iovec){byte, 1};
    }
    int fd = create(paths[0]);
    assert_int_equal(fx_writev_all(fd, parts, COUNT_OF(parts), paths[0]), FXTAP_OK);
    assert_int_equal(lseek(fd, 0, SEEK_END), COUNT_OF(parts));
    close(fd);
    unlink(paths[0]);
}

static void test_reading_past_the_end(void **state)
{
    (void)state;
    char back[8];
    int fd = create(paths[0]);
    assert_int_equal(fx_write_all(fd, "four", 4, paths[0]), FXTAP_OK);
    assert_int_equal(fx_pread_all(fd, back, 5, 0, paths[0]), FXTAP_E_FORMAT);
    assert_non_null(strstr(fxtap_error_message(), "ends at byte 4"));
    assert_int_equal(fx_pread_all(fd, back, 1, UINT64_MAX, paths[0]), FXTAP_E_FORMAT);
    close(fd);
    assert_int_equal(fx_pread_all(fd, back, 1, 0, paths[0]), FXTAP_E_IO);
    assert_int_equal(fxtap_error_errno(), EBADF);
    assert_string_equal(fxtap_error_path(), paths[0]);
    unlink(paths[0]);
}

static void on_signal(int number)
{
    (void)number;
}

static void *drain(void *fd)
{
    char block[997];
    size_t total = 0;
    ssize_t n;
    while ((n = read(*(int *)fd, block, sizeof block)) != 0) {
        total += n > 0 ? (size_t)n : 0;
    }
    return (void *)total;
}

/* A pipe that a slow reader empties, and a timer that interrupts: causes short writes and EINTR. */
static void test_interrupted_writes(void **state)
{
    (void)state;
    enum { N = 8 << 20 };
    int ends[2];
    pthread_t reader;
    void *total;
    char *bytes = calloc(1, N);
    assert_non_null(bytes);
    assert_int_equal(pipe(ends), 0);
    const struct sigaction action = {.sa_handler = on_signal}; /* no SA_RESTART */
    const struct itimerval often = {{0, 200}, {0, 200}};
    const struct itimerval never = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    assert_int_equal(pthread_create(&reader, NULL, drain, &ends[0]), 0);
    setitimer(ITIMER_REAL, &often, NULL);
    struct iovec parts[] = {{bytes, N / 2}, {bytes, N / 2}};
    fxtap_status status = fx_write_all(ends[1], bytes, N, "pipe");
    fxtap_status status_v = fx_writev_all(ends[1], parts, 2, "pipe");
    setitimer(ITIMER_REAL, &never, NULL);
    close(ends[1]);
    pthread_join(reader, &total);
    close(ends[0]);
    free(bytes);
    assert_int_equal(status, FXTAP_OK);
    assert_int_equal(status_v, FXTAP_OK);
    assert_int_equal((size_t)total, 2 * N);
}

/* The limit first shortens a write and then rejects the rest: errno and path are reported, and no file remains. */
static void test_a_file_size_limit(void **state)
{
    (void)state;
    enum { N = 2 << 20 };
    struct rlimit kept;
    char *bytes = calloc(1, N);
    assert_non_null(bytes);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &kept), 0);
    const struct rlimit small = {1 << 20, kept.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    const int64_t shape[] = {N / 2};
    const int64_t strides[] = {2};
    const fxtap_view contiguous = {bytes, FXTAP_INT16, 1, 0, shape, NULL};
    const fxtap_view strided = {bytes, FXTAP_INT8, 1, 0, shape, strides};
    const fxtap_view *views[] = {&contiguous, &strided};
    for (size_t i = 0; i < COUNT_OF(views); i++) {
        assert_int_equal(fxtap_npy_save(paths[0], views[i]), FXTAP_E_IO);
        assert_int_equal(fxtap_error_errno(), EFBIG);
        assert_string_equal(fxtap_error_path(), paths[0]);
        assert_int_equal(rmdir(folder), 0); /* empty: neither a partial nor a temporary file */
        assert_int_equal(mkdir(folder, 0700), 0);
    }
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &kept), 0);
    free(bytes);
}

static void test_rename_new(void **state)
{
    (void)state;
    close(create(paths[0]));
    assert_int_equal(fx_rename_new(paths[0], paths[1]), FXTAP_OK);
    assert_int_equal(access(paths[0], F_OK), -1);
    close(create(paths[0]));
    assert_int_equal(fx_rename_new(paths[0], paths[1]), FXTAP_E_EXISTS);
    assert_string_equal(fxtap_error_path(), paths[1]);
    assert_int_equal(access(paths[0], F_OK), 0);
    unlink(paths[0]);
    assert_int_equal(fx_rename_new(paths[0], paths[1]), FXTAP_E_IO);
    assert_int_equal(fxtap_error_errno(), ENOENT);
    assert_non_null(strstr(fxtap_error_message(), "No such file or directory"));
    unlink(paths[1]);
}

static int refused_errno; /* state of the injected faults */

static int refuse_rename(int old_fd, const char *old_path, int new_fd, const char *new_path, int no_replace)
{
    if (no_replace) {
        errno = EINVAL;
        return -1;
    }
    return renameat(old_fd, old_path, new_fd, new_path);
}

static int refuse_link(int old_fd, const char *old_path, int new_fd, const char *new_path, int flags)
{
    (void)old_fd, (void)old_path, (void)new_fd, (void)new_path, (void)flags;
    errno = refused_errno;
    return -1;
}

static int refuse_open(int dir_fd, const char *path, int flags, mode_t mode)
{
    (void)dir_fd, (void)path, (void)flags, (void)mode;
    errno = refused_errno;
    return -1;
}

static ssize_t refuse_write(int fd, const struct iovec *parts, int n_parts)
{
    (void)fd, (void)parts, (void)n_parts;
    errno = refused_errno;
    return refused_errno == 0 ? 0 : -1;
}

static int refuse_close(int fd)
{
    close(fd);
    errno = refused_errno;
    return -1;
}

/* File systems without RENAME_NOREPLACE, then also without hard links. */
static void test_rename_new_without_the_call(void **state)
{
    (void)state;
    for (int has_links = 1; has_links >= 0; has_links--) {
        fx_system.rename = refuse_rename;
        fx_system.linkat = has_links ? linkat : refuse_link;
        refused_errno = EPERM;
        close(create(paths[0]));
        assert_int_equal(fx_rename_new(paths[0], paths[1]), FXTAP_OK);
        assert_int_equal(access(paths[0], F_OK), -1);
        assert_int_equal(access(paths[1], F_OK), 0);
        close(create(paths[0]));
        assert_int_equal(fx_rename_new(paths[0], paths[1]), FXTAP_E_EXISTS);
        assert_int_equal(access(paths[0], F_OK), 0);
        unlink(paths[0]);
        unlink(paths[1]);
        assert_int_equal(fx_rename_new(paths[0], paths[1]), FXTAP_E_IO);
        assert_int_equal(fxtap_error_errno(), ENOENT);
        fx_system_reset();
    }
    fx_system.rename = refuse_rename;
    fx_system.linkat = refuse_link;
    refused_errno = ENOSPC;
    close(create(paths[0]));
    assert_int_equal(fx_rename_new(paths[0], paths[1]), FXTAP_E_IO);
    assert_int_equal(fxtap_error_errno(), ENOSPC);
    fx_system_reset();
    unlink(paths[0]);
}

/* Each call that creates a file fails once: errno and path are reported, and the folder stays empty. */
static void test_save_under_faults(void **state)
{
    (void)state;
    const float numbers[4] = {1, 2, 3, 4};
    const int64_t shape[] = {4};
    const fxtap_view view = {numbers, FXTAP_FLOAT32, 1, 0, shape, NULL};
    static const int errors[] = {EACCES, ENOSPC, 0, EDQUOT, EIO};
    for (size_t i = 0; i < COUNT_OF(errors); i++) {
        refused_errno = errors[i];
        switch (i) {
        case 0:
            fx_system.openat = refuse_open;
            break;
        case 1:
        case 2: /* a write of zero bytes counts as a full disk */
            fx_system.writev = refuse_write;
            break;
        case 3:
            fx_system.close = refuse_close;
            break;
        default:
            fx_system.rename = refuse_rename;
            fx_system.linkat = refuse_link;
        }
        assert_int_equal(fxtap_npy_save(paths[0], &view), FXTAP_E_IO);
        fx_system_reset();
        assert_int_equal(fxtap_error_errno(), errors[i] == 0 ? ENOSPC : errors[i]);
        assert_string_equal(fxtap_error_path(), paths[0]);
        assert_int_equal(rmdir(folder), 0);
        assert_int_equal(mkdir(folder, 0700), 0);
    }
}

/*
 * More bytes than one write() transfers: 2^31 + 5, the last of which is 7. The source is a sparse file in memory, the
 * target is mostly zeros. One of the long tests (FXTAP_LONG_TESTS set); skipped without disk space.
 */
static void test_more_than_one_write_moves(void **state)
{
    (void)state;
    const size_t n = ((size_t)1 << 31) + 5;
    struct statvfs disk;
    assert_int_equal(statvfs(folder, &disk), 0);
    if (getenv("FXTAP_LONG_TESTS") == NULL || disk.f_bavail * disk.f_frsize < n * 2) {
        SKIP("a long test, or no room on the disk");
    }
    int source = memfd_create("fxtap-test", 0);
    assert_true(source >= 0);
    assert_int_equal(ftruncate(source, (off_t)n), 0);
    assert_int_equal(pwrite(source, "\7", 1, (off_t)n - 1), 1);
    void *bytes = mmap(NULL, n, PROT_READ, MAP_SHARED, source, 0);
    assert_true(bytes != MAP_FAILED);
    const int64_t shape[] = {(int64_t)n};
    const fxtap_view view = {bytes, FXTAP_UINT8, 1, 0, shape, NULL};
    fxtap_npy *npy;
    unsigned char last[2] = {0, 0};
    assert_int_equal(fxtap_npy_save(paths[0], &view), FXTAP_OK);
    assert_int_equal(fxtap_npy_open(paths[0], &npy), FXTAP_OK);
    assert_int_equal(fxtap_npy_data_bytes(npy), n);
    assert_int_equal(fxtap_view_gather(fxtap_npy_view(npy), n - 2, 2, last), FXTAP_OK);
    assert_int_equal(last[0], 0);
    assert_int_equal(last[1], 7);
    fxtap_npy_close(npy);
    munmap(bytes, n);
    close(source);
    unlink(paths[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_calls),
        cmocka_unit_test(test_many_parts),
        cmocka_unit_test(test_reading_past_the_end),
        cmocka_unit_test(test_interrupted_writes),
        cmocka_unit_test(test_a_file_size_limit),
        cmocka_unit_test(test_rename_new),
        cmocka_unit_test(test_rename_new_without_the_call),
        cmocka_unit_test(test_save_under_faults),
        cmocka_unit_test(test_more_than_one_write_moves),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
