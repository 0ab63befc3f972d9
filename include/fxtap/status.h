/*
 * fxtap/status.h - what all headers share: status and message, memory, progress.
 *
 * A function that can fail returns `fxtap_status`: 0, or one of the negative values below. These values are
 * pinned: they never change meaning. On failure the thread that called has one line of text, set where the fault
 * was found: lower case, naming the path and the value at fault. Out-parameters are untouched on failure.
 *
 * No argument may be NULL unless its function says so. Functions that return `fxtap_status` check that, and give
 * FXTAP_E_INVALID with the argument's name; so do wrong `struct_size`s. Accessors, which return a value, do not check.
 * Handles that were closed or freed must not be used, except as said in fxtap/dump.h of a call whose dump was closed.
 *
 * Thread rule: the message belongs to the calling thread and lives until its next failing fxtap call.
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
    FXTAP_E_NOMEM = -1,       /* memory could not be had */
    FXTAP_E_INVALID = -2,     /* an argument or an option has a value that is not allowed */
    FXTAP_E_IO = -3,          /* the system refused; fxtap_error_errno() and fxtap_error_path() say what and where */
    FXTAP_E_FORMAT = -4,      /* a file is not what it should be: foreign, cut, hostile */
    FXTAP_E_UNSUPPORTED = -5, /* understood, and not handled: an object array, an index from the future */
    FXTAP_E_NOT_FOUND = -6,   /* no such rank, graph, step, node or tensor */
    FXTAP_E_EXISTS = -7,      /* the place is taken and nothing may be overwritten */
    FXTAP_E_AGAIN = -8,       /* no room in the queue now; nothing was done */
    FXTAP_E_DATABASE = -9,    /* SQLite refused; the message has its words */
    FXTAP_E_CANCELLED = -10   /* stopped on request */
} fxtap_status;

/* The line that belongs to this thread's last failure; "" before the first. Never NULL. Borrowed. */
FXTAP_API const char *fxtap_error_message(void);

/* errno of this thread's last failure when it was FXTAP_E_IO, else 0. */
FXTAP_API int fxtap_error_errno(void);

/* The path at fault in this thread's last failure, or "" where there was none. Never NULL. Borrowed. */
FXTAP_API const char *fxtap_error_path(void);

/* The name of a status, as "FXTAP_E_IO"; "unknown status" for a value that is none. Never NULL. */
FXTAP_API const char *fxtap_status_name(fxtap_status status);

/* Frees memory that a function of this library handed out to be freed with it. NULL is allowed. */
FXTAP_API void fxtap_free(void *memory);

/* Progress of a long function: done and total files. Returning false stops it with FXTAP_E_CANCELLED. */
typedef bool (*fxtap_progress)(void *context, uint64_t done, uint64_t total);

/* The version of the library in use, as "0.1.0". */
FXTAP_API const char *fxtap_version(void);

#ifdef __cplusplus
}
#endif
#endif
