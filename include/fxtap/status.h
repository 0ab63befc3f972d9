/*
 * fxtap/status.h - shared by all headers: status and message, memory, progress.
 *
 * A function that can fail returns `fxtap_status`: 0, or one of the negative values below. These values never change
 * meaning. On failure the calling thread gets a message of one line, set where the fault was found: lower case, naming
 * the path and the value at fault. Out-parameters are untouched on failure.
 *
 * No argument may be NULL unless its function allows it. Functions that return `fxtap_status` check this and return
 * FXTAP_E_INVALID with the argument's name; also for a wrong `struct_size`. Accessors, which return a value, do not
 * check. Closed or freed handles must not be used, except a call whose dump was closed (see fxtap/dump.h).
 *
 * Thread rule: each thread has its own message, which is valid until its next failing fxtap call.
 */
#ifndef FXTAP_STATUS_H
#define FXTAP_STATUS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FXTAP_API __attribute__((visibility("default")))
#else
#define FXTAP_API
#endif

#define FXTAP_VERSION "0.1.0"

typedef enum fxtap_status {
    FXTAP_OK = 0,
    FXTAP_E_NOMEM = -1,       /* out of memory */
    FXTAP_E_INVALID = -2,     /* an argument or an option is invalid */
    FXTAP_E_IO = -3,          /* a system call failed; see fxtap_error_errno() and fxtap_error_path() */
    FXTAP_E_FORMAT = -4,      /* a file is invalid: foreign, truncated, hostile */
    FXTAP_E_UNSUPPORTED = -5, /* valid, but not supported: an object array, a newer index */
    FXTAP_E_NOT_FOUND = -6,   /* no such rank, graph, step, node or tensor */
    FXTAP_E_EXISTS = -7,      /* the file exists and must not be overwritten */
    FXTAP_E_AGAIN = -8,       /* the queue is full; nothing was done */
    FXTAP_E_DATABASE = -9,    /* SQLite failed; the message includes its error */
    FXTAP_E_CANCELLED = -10   /* cancelled by the caller */
} fxtap_status;

/* The message of this thread's last failure; "" before the first. Never NULL. Borrowed. */
FXTAP_API const char *fxtap_error_message(void);

/* errno of this thread's last failure if it was FXTAP_E_IO, else 0. */
FXTAP_API int fxtap_error_errno(void);

/* The path of this thread's last failure, or "". Never NULL. Borrowed. */
FXTAP_API const char *fxtap_error_path(void);

/* The name of a status, such as "FXTAP_E_IO"; "unknown status" for any other value. Never NULL. */
FXTAP_API const char *fxtap_status_name(fxtap_status status);

/* Frees memory that a function of this library returned to its caller. NULL is allowed. */
FXTAP_API void fxtap_free(void *memory);

/* Progress of a long function: done and total files. Return false to stop it with FXTAP_E_CANCELLED. */
typedef bool (*fxtap_progress)(void *context, uint64_t done, uint64_t total);

/* The version of the library in use, as "0.1.0". */
FXTAP_API const char *fxtap_version(void);

#ifdef __cplusplus
}
#endif
#endif
