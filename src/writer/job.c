/* Running one job: computes the value, and makes its file by a link, from memory, or by a copy. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "fxtap/npy.h"
#include "tensor/hash.h"
#include "tensor/undefined.h"
#include "tensor/view.h"
#include "util/file.h"
#include "util/memory.h"
#include "util/number.h"
#include "util/system.h"
#include "writer/dump.h"

#define HEADER_ROOM 4096
#define BLOCK_BYTES ((size_t)256 * 1024)

const char FX_DEFAULT_LAYOUT[] = "torch.strided";
const char FX_DEFAULT_DEVICE[] = "cpu";

size_t fx_slot_file_name(const fx_capture_slot *slot, uint64_t stamp_us, char dst[FX_NAME_MAX + 1])
{
    return fx_name_file(slot->prefix, slot->prefix_length, stamp_us, dst);
}

static bool is_text(const fx_value *value)
{
    return value->view.dtype == FXTAP_STRING;
}

void fx_value_descr(const fx_value *value, char dst[32])
{
    if (is_text(value)) {
        char digits[FX_NUMBER_BYTES];
        size_t n = fx_u64_text(value->saved_bytes / 4, digits);
        memcpy(dst, "<U", 2);
        memcpy(dst + 2, digits, n + 1);
    } else {
        const char *descr = fxtap_dtype_descr(fxtap_dtype_saved(value->view.dtype));
        memcpy(dst, descr, strlen(descr) + 1);
    }
}

static fxtap_status make_header(const fx_value *value, unsigned char header[HEADER_ROOM], size_t *n_bytes_out)
{
    char descr[32];
    int64_t shape[FXTAP_MAX_DIMS];
    fx_value_descr(value, descr);
    if (!is_text(value)) {
        fx_view_saved_shape(&value->view, shape);
    }
    return fxtap_npy_header(descr, value->order == FXTAP_ORDER_FORTRAN, value->view.ndim, shape, header, HEADER_ROOM,
                            n_bytes_out);
}

/* The hash of the data with what the header states: values with equal keys have equal files. */
static fxtap_hash128 key_of(const fx_value *value)
{
    struct {
        fxtap_hash128 hash;
        uint64_t bytes;
        int32_t dtype, fortran, ndim, padding;
        int64_t shape[FXTAP_MAX_DIMS];
    } parts;
    parts.hash = value->hash;
    parts.bytes = value->saved_bytes;
    parts.dtype = (int32_t)fxtap_dtype_saved(value->view.dtype);
    parts.fortran = value->order == FXTAP_ORDER_FORTRAN;
    parts.ndim = value->view.ndim;
    parts.padding = is_text(value);
    if (value->view.ndim > 0) {
        fx_view_saved_shape(&value->view, parts.shape);
    }
    size_t n_bytes = offsetof(__typeof__(parts), shape) + (size_t)value->view.ndim * sizeof parts.shape[0];
    XXH128_hash_t hash = XXH3_128bits(&parts, n_bytes);
    return (fxtap_hash128){.high = hash.high64, .low = hash.low64};
}

static fxtap_status compute(fx_value *value)
{
    fxtap_status status = FXTAP_OK;
    if (value->has_stats) {
        return status;
    }
    if (value->n_undefined > 0) {
        status = fx_undefined_stats(&value->view, value->undefined, value->n_undefined, &value->stats, &value->hash,
                                    &value->defined_hash);
    } else if (value->source != NULL) {
        value->stats = value->source->stats;
        value->hash = value->source->hash;
    } else if (is_text(value)) {
        value->stats = (fxtap_stats){.dtype = FXTAP_STRING, .count = 1};
        value->hash = fx_hash_bytes(value->view.data, value->saved_bytes);
    } else {
        status = fxtap_stats_compute(&value->view, &value->stats, &value->hash);
    }
    value->key = key_of(value);
    value->has_stats = status == FXTAP_OK;
    return status;
}

/* ---- writing ---- */

static bool is_too_long(const fx_job *job, size_t name_bytes)
{
    return job->call->path_bytes + name_bytes >= PATH_MAX;
}

static fxtap_status create(fx_job *job, const char *name, bool read_only, int *fd_out)
{
    if (is_too_long(job, strlen(name))) {
        return fx_tree_error(job->call, ENAMETOOLONG, "create", name);
    }
    int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
    *fd_out = fx_system.openat(job->call->dir_fd, name, flags, read_only ? 0444 : 0666);
    return *fd_out >= 0 ? FXTAP_OK : fx_tree_error(job->call, errno, "create", name);
}

static void *block_of(void **scratch)
{
    if (*scratch == NULL) {
        *scratch = fx_alloc(BLOCK_BYTES);
    }
    return *scratch;
}

/* A file being written. */
typedef struct output {
    const fx_job *job;
    const char *name;
    int fd;
    unsigned char header[HEADER_ROOM];
    size_t header_bytes; /* 0 once written */
} output;

/* The first block is written together with the header. */
static fxtap_status put(output *out, const void *bytes, size_t n_bytes)
{
    struct iovec parts[2] = {{out->header, out->header_bytes}, {(void *)(uintptr_t)bytes, n_bytes}};
    int error_number = fx_writev_parts(out->fd, parts, 2);
    if (error_number != 0) {
        return fx_tree_error(out->job->call, error_number, "write", out->name);
    }
    out->header_bytes = 0;
    return FXTAP_OK;
}

static fxtap_status put_gathered(output *out, const fxtap_view *view, void **scratch)
{
    unsigned char small[4096];
    size_t item = fxtap_dtype_size(fxtap_dtype_saved(view->dtype));
    uint64_t n_left = fx_view_saved_count(view);
    bool is_small = n_left <= sizeof small / item;
    unsigned char *block = is_small ? small : block_of(scratch);
    size_t at_once = (is_small ? sizeof small : BLOCK_BYTES) / item;
    if (block == NULL) {
        return FXTAP_E_NOMEM;
    }
    fxtap_status status = FXTAP_OK;
    for (uint64_t first = 0; status == FXTAP_OK && n_left > 0;) {
        uint64_t count = n_left < at_once ? n_left : at_once;
        status = fxtap_view_gather(view, first, count, block);
        if (status == FXTAP_OK) {
            status = put(out, block, (size_t)count * item);
        }
        first += count;
        n_left -= count;
    }
    return status;
}

/* Copies the data of another file of this call, after its header of `skip` bytes. */
static fxtap_status put_copied(output *out, const fx_link_source *source, size_t skip, void **scratch)
{
    fxtap_call *call = out->job->call;
    char from[FX_NAME_MAX + 1];
    fx_slot_file_name(source->slot, source->stamp_us, from);
    void *block = block_of(scratch);
    if (block == NULL) {
        return FXTAP_E_NOMEM;
    }
    int fd = fx_system.openat(call->dir_fd, from, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
    if (fd < 0) {
        return fx_tree_error(call, errno, "open", from);
    }
    fxtap_status status = FXTAP_OK;
    for (off_t at = (off_t)skip; status == FXTAP_OK;) {
        ssize_t n = pread(fd, block, BLOCK_BYTES, at);
        if (n < 0 && errno != EINTR) {
            status = fx_tree_error(call, errno, "read", from);
        } else if (n == 0) {
            break;
        } else if (n > 0) {
            status = put(out, block, (size_t)n);
            at += n;
        }
    }
    fx_system.close(fd);
    return status;
}

static fxtap_status put_data(output *out, const fx_value *copied, void **scratch)
{
    const fx_value *value = out->job->value;
    if (copied != NULL) {
        unsigned char header[HEADER_ROOM];
        size_t skip;
        fx_link_source source;
        fx_contents_get_file(&out->job->call->dump->contents, out->job->call, copied, &source);
        fxtap_status status = make_header(copied, header, &skip);
        return status == FXTAP_OK ? put_copied(out, &source, skip, scratch) : status;
    }
    if (is_text(value) || fx_view_is_saved_form(&value->view)) {
        return put(out, value->view.data, (size_t)value->saved_bytes);
    }
    return put_gathered(out, &value->view, scratch);
}

/*
 * Writes the job's own file, from memory or from the file of `copied` (the same value under its first name, or one with
 * its bytes). Removes it on failure.
 */
static fxtap_status make_file(fx_job *job, const fx_value *copied, bool read_only, void **scratch)
{
    char name[FX_NAME_MAX + 1];
    fx_slot_file_name(job->slot, job->stamp_us, name);
    output out = {.job = job, .name = name, .fd = -1};
    fxtap_status status = make_header(job->value, out.header, &out.header_bytes);
    if (status == FXTAP_OK) {
        status = create(job, name, read_only, &out.fd);
    }
    if (status != FXTAP_OK) {
        return status;
    }
    status = put_data(&out, copied, scratch);
    if (status == FXTAP_OK && out.header_bytes > 0) {
        status = put(&out, NULL, 0); /* no elements: the header alone */
    }
    if (fx_system.close(out.fd) != 0 && status == FXTAP_OK && errno != EINTR) {
        status = fx_tree_error(job->call, errno, "close", name);
    }
    if (status != FXTAP_OK) {
        unlinkat(job->call->dir_fd, name, 0);
    }
    return status;
}

/* ---- linking ---- */

/*
 * Makes a file that is about to get a second name read-only. False if it was modified after its step ended (the
 * kernel's file times are up to a tick late, never early).
 */
static bool protect(const fx_job *job, int dir_fd, const char *path, const fx_link_source *source)
{
    struct stat info;
    if (fstatat(dir_fd, path, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) {
        return false;
    }
    uint64_t changed_ns = (uint64_t)info.st_mtim.tv_sec * 1000000000u + (uint64_t)info.st_mtim.tv_nsec;
    if (source->ended_ns != 0 && changed_ns > source->ended_ns) {
        errno = ENOENT;
        return false;
    }
    if (fchmodat(dir_fd, path, info.st_mode & 0555, 0) != 0) {
        return false;
    }
    fx_contents_set_read_only(&job->call->dump->contents, job, source);
    atomic_store_explicit(&source->slot->was_linked, true, memory_order_relaxed);
    return true;
}

static bool try_link(fx_job *job, const fx_link_source *source)
{
    fxtap_call *call = job->call;
    char name[FX_NAME_MAX + 1];
    char path[sizeof source->path + FX_NAME_MAX + 2];
    size_t at = 0;
    int dir_fd = call->dir_fd;
    if (source->folder != call->folder) {
        if (source->rank_number != call->rank->number) {
            errno = EXDEV;
            return false;
        }
        at = strlen(source->path);
        memcpy(path, source->path, at);
        path[at++] = '/';
        dir_fd = call->rank->fd;
    }
    fx_slot_file_name(source->slot, source->stamp_us, path + at);
    if (is_too_long(job, fx_slot_file_name(job->slot, job->stamp_us, name))) {
        errno = ENAMETOOLONG;
        return false;
    }
    if (!source->is_read_only && !protect(job, dir_fd, path, source)) {
        return false;
    }
    return fx_system.linkat(dir_fd, path, call->dir_fd, name, 0) == 0;
}

static bool link_to(fx_job *job, fx_link_source *source)
{
    fxtap_dump *dump = job->call->dump;
    if (try_link(job, source)) {
        return true;
    }
    bool is_refused = errno == EPERM || errno == ENOTSUP || errno == ENOSYS;
    if (errno == ENOENT && source->folder != job->call->folder) { /* it may be moving */
        pthread_mutex_lock(&dump->contents.move);
        bool is_linked = fx_contents_find(&dump->contents, job, source) && try_link(job, source);
        pthread_mutex_unlock(&dump->contents.move);
        return is_linked;
    }
    if (is_refused) {
        atomic_store(&dump->has_no_links, true); /* so that it is not tried for each file */
    }
    return false;
}

static bool may_link(const fxtap_dump *dump)
{
    return !dump->no_dedup && !atomic_load_explicit(&dump->has_no_links, memory_order_relaxed);
}

/* ---- jobs ---- */

/* The value whose file has the bytes of a value that the host cannot read; NULL: they are in memory. */
static const fx_value *copied_value(const fx_job *job)
{
    return job->value->is_unreadable ? job->value->source : NULL;
}

/* A file that will get more names is created read-only: that is free, changing it later costs two system calls. */
static bool will_be_linked(const fx_job *job)
{
    return may_link(job->call->dump) && (atomic_load_explicit(&job->value->has_aliases, memory_order_relaxed) ||
                                         atomic_load_explicit(&job->slot->was_linked, memory_order_relaxed));
}

static fxtap_status make_own_file(fx_job *job, bool read_only, void **scratch)
{
    fxtap_status status = make_file(job, copied_value(job), read_only, scratch);
    if (status == FXTAP_OK) {
        fx_contents_set_file(&job->call->dump->contents, job, read_only);
    }
    return status;
}

typedef struct progress {
    fx_job *work; /* jobs to run */
    fx_job **finished;
    void **scratch;
} progress;

static fxtap_status write_for_all(progress *at, fx_job *job)
{
    bool read_only = will_be_linked(job);
    fxtap_status status = make_file(job, copied_value(job), read_only, at->scratch);
    fx_job *waiters = fx_contents_settle(&job->call->dump->contents, job, status == FXTAP_OK, read_only);
    while (waiters != NULL) {
        fx_job *next = waiters->next;
        waiters->next = at->work;
        at->work = waiters;
        waiters = next;
    }
    return status;
}

/* Makes the file of a value's first name. False: the job waits for another job's file. */
static bool place_first(progress *at, fx_job *job, fxtap_status *status)
{
    fx_contents *contents = &job->call->dump->contents;
    fx_link_source source;
    *status = compute(job->value);
    if (*status != FXTAP_OK || job->call->dump->type == FXTAP_DUMP_STATS) {
        return true;
    }
    if (!may_link(job->call->dump)) {
        *status = make_own_file(job, will_be_linked(job), at->scratch);
        return true;
    }
    switch (fx_contents_claim(contents, job, &source)) {
    case FX_CLAIM_WAIT:
        return false;
    case FX_CLAIM_WRITE:
        *status = write_for_all(at, job);
        return true;
    case FX_CLAIM_LINK:
        if (link_to(job, &source)) {
            fx_contents_set_file(contents, job, true);
        } else {
            *status = make_own_file(job, will_be_linked(job), at->scratch);
            if (*status == FXTAP_OK) {
                fx_contents_replace(contents, job);
            }
        }
        return true;
    }
    return true;
}

/* Makes another name of a value that has its file. */
static fxtap_status place_alias(progress *at, fx_job *job)
{
    fxtap_dump *dump = job->call->dump;
    assert(job->value != NULL);
    if (dump->type == FXTAP_DUMP_STATS) {
        return FXTAP_OK;
    }
    fx_link_source source;
    fx_contents_get_file(&dump->contents, job->call, job->value, &source);
    if (may_link(dump) && link_to(job, &source)) {
        return FXTAP_OK;
    }
    fxtap_status status = make_file(job, job->value, false, at->scratch);
    if (status == FXTAP_OK) {
        fx_contents_set_file(&dump->contents, job, false);
    }
    return status;
}

static bool run_one(progress *at, fx_job *job)
{
    fxtap_call *call = job->call;
    fxtap_status status = FXTAP_OK;
    const fx_value *awaited = job->is_first ? job->value->source : job->value;
    if (atomic_load_explicit(&call->has_failed, memory_order_relaxed) ||
        (awaited != NULL && atomic_load(&awaited->state) == FX_VALUE_FAILED)) {
        return true;
    }
    if (job->is_first) {
        if (!place_first(at, job, &status)) {
            return false;
        }
    } else {
        status = place_alias(at, job);
    }
    job->is_written = status == FXTAP_OK;
    if (status != FXTAP_OK) {
        fx_call_set_error(call, status);
    }
    return true;
}

void fx_job_run(fx_job *job, void **scratch, fx_job **finished)
{
    job->next = NULL;
    progress at = {.work = job, .finished = finished, .scratch = scratch};
    while (at.work != NULL) {
        fx_job *now = at.work;
        at.work = now->next;
        now->next = NULL;
        if (run_one(&at, now)) {
            now->next = *finished;
            *finished = now;
        }
    }
}
