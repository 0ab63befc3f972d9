/*
 * contents.h - which file holds which contents, so that equal contents are written once and linked afterwards.
 */
#ifndef FX_WRITER_CONTENTS_H
#define FX_WRITER_CONTENTS_H

#include <pthread.h>

#include "util/table.h"
#include "writer/job.h"

typedef struct fx_contents {
    pthread_mutex_t lock; /* the table, the folders' fields, and the values' files */
    pthread_mutex_t move; /* held while a step's folder moves into place; `lock` may be taken inside it */
    fx_table table;       /* of fx_content_file */
} fx_contents;

/* The folder of one step. contents.lock. */
typedef struct fx_step_folder {
    unsigned n_users;  /* freed with the last one */
    uint64_t ended_ns; /* CLOCK_REALTIME when it was moved into place; 0 before */
    uint64_t rank_number;
    char path[96]; /* relative to the rank's folder; changes when the folder moves */
} fx_step_folder;

/* The file that holds some contents. */
typedef struct fx_content_file {
    fxtap_hash128 key;
    fx_step_folder *folder; /* NULL while the first file with these contents is being written */
    struct fx_capture_slot *slot;
    uint64_t stamp_us;
    fx_job *writer; /* the job that writes it; NULL: it is there */
    bool is_read_only;
} fx_content_file;

/* A file to link to, as it was when it was asked for. */
typedef struct fx_link_source {
    const fx_step_folder *folder; /* only to be compared */
    struct fx_capture_slot *slot;
    uint64_t stamp_us;
    uint64_t ended_ns;
    uint64_t rank_number;
    bool is_read_only;
    char path[96];
} fx_link_source;

void fx_contents_init(fx_contents *contents);
void fx_contents_clear(fx_contents *contents);
/* Forgets every file: the root is a new one. */
void fx_contents_forget(fx_contents *contents);

typedef enum fx_claim { FX_CLAIM_WRITE, FX_CLAIM_LINK, FX_CLAIM_WAIT } fx_claim;

/*
 * What the first job of a value is to do. WRITE: write the file, and call fx_contents_settle() afterwards. LINK: link
 * to *out. WAIT: nothing; another job is writing these contents, and its fx_contents_settle() returns this job.
 */
fx_claim fx_contents_claim(fx_contents *contents, fx_job *job, fx_link_source *out);
/* The current place of the file with the job's contents; false: unknown. */
bool fx_contents_find(fx_contents *contents, const fx_job *job, fx_link_source *out);
/* Ends a claim to write. Returns the jobs that waited for the file. */
fx_job *fx_contents_settle(fx_contents *contents, fx_job *job, bool is_written, bool is_read_only);
/* The job's file replaces one that could not be linked. */
void fx_contents_replace(fx_contents *contents, fx_job *job);
/* The file `source` has become read-only. */
void fx_contents_set_read_only(fx_contents *contents, const fx_job *job, const fx_link_source *source);
/* The job's file has got another time stamp. */
void fx_contents_restamp(fx_contents *contents, const fx_job *job, uint64_t stamp_us);
/* The value's file in its call's folder. */
void fx_contents_set_file(fx_contents *contents, fx_job *job, bool is_read_only);
void fx_contents_get_file(fx_contents *contents, const fxtap_call *call, const fx_value *value, fx_link_source *out);
/* The folder has moved into place. */
void fx_contents_set_path(fx_contents *contents, fx_step_folder *folder, const char *path);
void fx_contents_release_folder(fx_contents *contents, fx_step_folder *folder);

#endif
