/* Which file holds which contents, so that equal contents are written once. */
#include <string.h>

#include "util/memory.h"
#include "util/system.h"
#include "writer/dump.h"

#define MAX_CONTENTS 1000000

static void release_locked(fx_step_folder *folder)
{
    if (folder != NULL && --folder->n_users == 0) {
        fx_free(folder);
    }
}

static void forget_content(void *context, void *record)
{
    (void)context;
    release_locked(((fx_content_file *)record)->folder);
}

void fx_contents_init(fx_contents *contents)
{
    fx_short_lock_init(&contents->lock);
    pthread_mutex_init(&contents->move, NULL);
    fx_table_init(&contents->table, sizeof(fx_content_file), MAX_CONTENTS, forget_content, NULL);
}

void fx_contents_clear(fx_contents *contents)
{
    fx_table_clear(&contents->table);
    pthread_mutex_destroy(&contents->lock);
    pthread_mutex_destroy(&contents->move);
}

void fx_contents_forget(fx_contents *contents)
{
    pthread_mutex_lock(&contents->lock);
    fx_table_clear(&contents->table);
    pthread_mutex_unlock(&contents->lock);
}

static void describe(const fx_step_folder *folder, fx_link_source *out)
{
    out->folder = folder;
    out->ended_ns = folder->ended_ns;
    out->rank_number = folder->rank_number;
    memcpy(out->path, folder->path, sizeof out->path);
}

static void describe_content(const fx_content_file *content, fx_link_source *out)
{
    describe(content->folder, out);
    out->slot = content->slot;
    out->stamp_us = content->stamp_us;
    out->is_read_only = content->is_read_only;
}

fx_claim fx_contents_claim(fx_contents *contents, fx_job *job, fx_link_source *out)
{
    fx_claim claim = FX_CLAIM_WRITE;
    pthread_mutex_lock(&contents->lock);
    fx_content_file *content = fx_table_find(&contents->table, job->value->key);
    if (content == NULL) {
        content = fx_table_insert(&contents->table, job->value->key);
        if (content != NULL) { /* without memory it is written, and never linked to */
            content->writer = job;
        }
    } else if (content->writer != NULL) {
        job->next = content->writer->content_waiters;
        content->writer->content_waiters = job;
        claim = FX_CLAIM_WAIT;
    } else {
        describe_content(content, out);
        claim = FX_CLAIM_LINK;
    }
    pthread_mutex_unlock(&contents->lock);
    return claim;
}

bool fx_contents_find(fx_contents *contents, const fx_job *job, fx_link_source *out)
{
    pthread_mutex_lock(&contents->lock);
    const fx_content_file *content = fx_table_find(&contents->table, job->value->key);
    bool is_there = content != NULL && content->writer == NULL;
    if (is_there) {
        describe_content(content, out);
    }
    pthread_mutex_unlock(&contents->lock);
    return is_there;
}

static void point_at(fx_content_file *content, const fx_job *job)
{
    fx_step_folder *old = content->folder;
    content->folder = job->call->folder;
    content->folder->n_users++;
    content->slot = job->slot;
    content->stamp_us = job->stamp_us;
    content->writer = NULL;
    content->is_read_only = job->value->is_read_only;
    release_locked(old);
}

static void set_file_locked(fx_job *job, bool is_read_only)
{
    job->value->file_slot = job->slot;
    job->value->file_stamp_us = job->stamp_us;
    job->value->is_read_only = is_read_only;
}

fx_job *fx_contents_settle(fx_contents *contents, fx_job *job, bool is_written, bool is_read_only)
{
    pthread_mutex_lock(&contents->lock);
    if (is_written) {
        set_file_locked(job, is_read_only);
    }
    fx_content_file *content = fx_table_find(&contents->table, job->value->key);
    if (content != NULL && content->writer == job) {
        if (is_written) {
            point_at(content, job);
        } else {
            fx_table_remove(&contents->table, content);
        }
    }
    fx_job *waiters = job->content_waiters;
    job->content_waiters = NULL;
    pthread_mutex_unlock(&contents->lock);
    return waiters;
}

void fx_contents_replace(fx_contents *contents, fx_job *job)
{
    pthread_mutex_lock(&contents->lock);
    fx_content_file *content = fx_table_find(&contents->table, job->value->key);
    if (content != NULL && content->writer == NULL) {
        point_at(content, job);
    }
    pthread_mutex_unlock(&contents->lock);
}

void fx_contents_set_read_only(fx_contents *contents, const fx_job *job, const fx_link_source *source)
{
    pthread_mutex_lock(&contents->lock);
    fx_content_file *content = fx_table_find(&contents->table, job->value->key);
    if (content != NULL && content->folder == source->folder && content->slot == source->slot &&
        content->stamp_us == source->stamp_us) {
        content->is_read_only = true;
    }
    fx_value *value = job->value;
    if (job->call->folder == source->folder && value->file_slot == source->slot &&
        value->file_stamp_us == source->stamp_us) {
        value->is_read_only = true;
    }
    pthread_mutex_unlock(&contents->lock);
}

void fx_contents_restamp(fx_contents *contents, const fx_job *job, uint64_t stamp_us)
{
    pthread_mutex_lock(&contents->lock);
    fx_content_file *content = fx_table_find(&contents->table, job->value->key);
    if (content != NULL && content->folder == job->call->folder && content->slot == job->slot &&
        content->stamp_us == job->stamp_us) {
        content->stamp_us = stamp_us;
    }
    pthread_mutex_unlock(&contents->lock);
}

void fx_contents_set_file(fx_contents *contents, fx_job *job, bool is_read_only)
{
    pthread_mutex_lock(&contents->lock);
    set_file_locked(job, is_read_only);
    pthread_mutex_unlock(&contents->lock);
}

void fx_contents_get_file(fx_contents *contents, const fxtap_call *call, const fx_value *value, fx_link_source *out)
{
    pthread_mutex_lock(&contents->lock);
    describe(call->folder, out);
    out->slot = value->file_slot;
    out->stamp_us = value->file_stamp_us;
    out->is_read_only = value->is_read_only;
    pthread_mutex_unlock(&contents->lock);
}

void fx_contents_release_folder(fx_contents *contents, fx_step_folder *folder)
{
    pthread_mutex_lock(&contents->lock);
    release_locked(folder);
    pthread_mutex_unlock(&contents->lock);
}
