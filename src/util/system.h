/*
 * system.h - a table of the system calls that create and move files, so that a test can make any of them fail. Each
 * entry has the prototype and the errno of the call it is named after. Change it only while nothing is running.
 */
#ifndef FX_UTIL_SYSTEM_H
#define FX_UTIL_SYSTEM_H

#include <pthread.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef struct fx_system_calls {
    int (*openat)(int dir_fd, const char *path, int flags, mode_t mode);
    int (*mkdirat)(int dir_fd, const char *path, mode_t mode);
    ssize_t (*writev)(int fd, const struct iovec *parts, int n_parts);
    int (*linkat)(int old_dir_fd, const char *old_path, int new_dir_fd, const char *new_path, int flags);
    /* RENAME_NOREPLACE when `no_replace`; EINVAL if the file system does not support it. */
    int (*rename)(int old_dir_fd, const char *old_path, int new_dir_fd, const char *new_path, int no_replace);
    int (*close)(int fd);
} fx_system_calls;

extern fx_system_calls fx_system;

/* Number of processors that this process may use; >= 1. */
unsigned fx_processor_count(void);

/* Locks a mutex that is held for less time than sleeping and waking take: spins for a while first. */
void fx_short_lock_init(pthread_mutex_t *lock);

/* Names a thread, in at most 15 bytes, for debuggers and top. */
void fx_name_thread(pthread_t thread, const char *name);

/* Restores the real calls. */
void fx_system_reset(void);

#endif
