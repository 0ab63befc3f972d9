/*
 * error.h - sets the calling thread's last error. Set where the fault is found, never rewritten by callers.
 */
#ifndef FX_UTIL_ERROR_H
#define FX_UTIL_ERROR_H

#include "fxtap/status.h"

/* Sets the message and returns `status`, for `return fx_error(FXTAP_E_INVALID, "...")`. */
fxtap_status fx_error(fxtap_status status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same, and stores the path for fxtap_error_path(); the message is "`path`: text". */
fxtap_status fx_error_at(fxtap_status status, const char *path, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* FXTAP_E_IO for a failed system call: "cannot `action` `path`: strerror", with errno and path stored. */
fxtap_status fx_error_errno(int error_number, const char *action, const char *path);

fxtap_status fx_error_nomem(void);

#ifdef __clang_analyzer__ /* sees one file at a time, and would take an error for FXTAP_OK */
static inline fxtap_status fx_not_ok(fxtap_status status)
{
    if (status == FXTAP_OK) {
        __builtin_unreachable();
    }
    return status;
}
#define fx_error(...) fx_not_ok((fx_error)(__VA_ARGS__))
#define fx_error_at(...) fx_not_ok((fx_error_at)(__VA_ARGS__))
#define fx_error_errno(...) fx_not_ok((fx_error_errno)(__VA_ARGS__))
#define fx_error_nomem() fx_not_ok((fx_error_nomem)())
#endif

/* FXTAP_E_INVALID for a NULL pointer where NULL is not allowed: used at the start of public functions. */
#define FX_REQUIRE(pointer)                                                                                            \
    do {                                                                                                               \
        if ((pointer) == NULL) {                                                                                       \
            return fx_error(FXTAP_E_INVALID, "%s(): %s is NULL", __func__, #pointer);                                  \
        }                                                                                                              \
    } while (0)

/* An error passed from one thread to another (from a worker to the thread that ends the call). */
typedef struct fx_error_copy {
    fxtap_status status;
    int error_number;
    char message[1024];
    char path[4096];
} fx_error_copy;

void fx_error_save(fxtap_status status, fx_error_copy *out);
fxtap_status fx_error_restore(const fx_error_copy *copy);

#endif
