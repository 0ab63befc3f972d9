#include "util/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local fx_error_copy last;

static void set_text(const char *format, va_list arguments)
{
    int written = vsnprintf(last.message, sizeof last.message, format, arguments);
    if (written < 0) {
        last.message[0] = '\0';
    }
    for (char *c = last.message; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20) {
            *c = '?'; /* one line, even with a hostile name */
        }
    }
}

static void set_path(const char *path)
{
    snprintf(last.path, sizeof last.path, "%s", path);
}

fxtap_status fx_error(fxtap_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_text(format, arguments);
    va_end(arguments);
    last.path[0] = '\0';
    last.error_number = 0;
    last.status = status;
    return status;
}

fxtap_status fx_error_at(fxtap_status status, const char *path, const char *format, ...)
{
    char text[sizeof last.message];
    va_list arguments;
    va_start(arguments, format);
    int written = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fx_error(status, "%s: %s", path, written < 0 ? "" : text);
    set_path(path);
    return status;
}

fxtap_status fx_error_errno(int error_number, const char *action, const char *path)
{
    char room[128];
    const char *words = strerror_r(error_number, room, sizeof room); /* GNU's: may return another buffer */
    fx_error(FXTAP_E_IO, "cannot %s %s: %s", action, path[0] == '\0' ? "\"\"" : path, words);
    set_path(path);
    last.error_number = error_number;
    return FXTAP_E_IO;
}

fxtap_status fx_error_nomem(void)
{
    return fx_error(FXTAP_E_NOMEM, "out of memory");
}

void fx_error_save(fxtap_status status, fx_error_copy *out)
{
    *out = last;
    out->status = status;
}

fxtap_status fx_error_restore(const fx_error_copy *copy)
{
    last = *copy;
    return copy->status;
}

const char *fxtap_error_message(void)
{
    return last.message;
}

int fxtap_error_errno(void)
{
    return last.error_number;
}

const char *fxtap_error_path(void)
{
    return last.path;
}

const char *fxtap_status_name(fxtap_status status)
{
    switch (status) {
    case FXTAP_OK:
        return "FXTAP_OK";
    case FXTAP_E_NOMEM:
        return "FXTAP_E_NOMEM";
    case FXTAP_E_INVALID:
        return "FXTAP_E_INVALID";
    case FXTAP_E_IO:
        return "FXTAP_E_IO";
    case FXTAP_E_FORMAT:
        return "FXTAP_E_FORMAT";
    case FXTAP_E_UNSUPPORTED:
        return "FXTAP_E_UNSUPPORTED";
    case FXTAP_E_NOT_FOUND:
        return "FXTAP_E_NOT_FOUND";
    case FXTAP_E_EXISTS:
        return "FXTAP_E_EXISTS";
    case FXTAP_E_AGAIN:
        return "FXTAP_E_AGAIN";
    case FXTAP_E_DATABASE:
        return "FXTAP_E_DATABASE";
    case FXTAP_E_CANCELLED:
        return "FXTAP_E_CANCELLED";
    }
    return "unknown status";
}

const char *fxtap_version(void)
{
    return FXTAP_VERSION;
}
