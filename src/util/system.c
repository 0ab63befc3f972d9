#include "util/system.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

static int real_openat(int dir_fd, const char *path, int flags, mode_t mode)
{
    return openat(dir_fd, path, flags, mode);
}

static int real_rename(int old_dir_fd, const char *old_path, int new_dir_fd, const char *new_path, int no_replace)
{
    return no_replace ? renameat2(old_dir_fd, old_path, new_dir_fd, new_path, RENAME_NOREPLACE)
                      : renameat(old_dir_fd, old_path, new_dir_fd, new_path);
}

#define REAL_CALLS                                                                                                     \
    {                                                                                                                  \
        real_openat, mkdirat, writev, linkat, real_rename, close                                                       \
    }

fx_system_calls fx_system = REAL_CALLS;

void fx_system_reset(void)
{
    fx_system = (fx_system_calls)REAL_CALLS;
}

unsigned fx_processor_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        return (unsigned)CPU_COUNT(&set);
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN); /* more processors than cpu_set_t can hold */
    return n > 0 ? (unsigned)n : 1;
}

void fx_short_lock_init(pthread_mutex_t *lock)
{
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(lock, &kind);
    pthread_mutexattr_destroy(&kind);
}

void fx_name_thread(pthread_t thread, const char *name)
{
    pthread_setname_np(thread, name);
}
