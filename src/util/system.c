#include "util/system.h"

#include <fcntl.h>
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

#define REAL_CALLS {real_openat, mkdirat, writev, linkat, real_rename, close}

fx_system_calls fx_system = REAL_CALLS;

void fx_system_reset(void)
{
    fx_system = (fx_system_calls)REAL_CALLS;
}
