/* Preloaded: no file can be locked; the errno of an attempt is LOCK_ERRNO in the environment. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>

static int control(const char *name, int fd, int command, void *argument)
{
    if (command == F_SETLK || command == F_SETLKW || command == F_OFD_SETLK || command == F_OFD_SETLKW) {
        errno = atoi(getenv("LOCK_ERRNO"));
        return -1;
    }
    return ((int (*)(int, int, ...))dlsym(RTLD_NEXT, name))(fd, command, argument);
}

#define WITHOUT_LOCKS(name)                                                                                            \
    int name(int fd, int command, ...)                                                                                 \
    {                                                                                                                  \
        va_list list;                                                                                                  \
        va_start(list, command);                                                                                       \
        void *argument = va_arg(list, void *);                                                                         \
        va_end(list);                                                                                                  \
        return control(#name, fd, command, argument);                                                                  \
    }

WITHOUT_LOCKS(fcntl)
WITHOUT_LOCKS(fcntl64)
