/*
 * support_store.h - writes dumps in tests, and checks them against their index. All functions assert.
 */
#ifndef SUPPORT_STORE_H
#define SUPPORT_STORE_H

#include <stdbool.h>

#include "fxtap/dump.h"

/* Options of a one-rank dump into `root`. */
fxtap_dump_options ss_options(const char *root);
fxtap_dump *ss_open(const fxtap_dump_options *options);

/* cmocka's set-up and tear-down for tests that have one dump of one graph each (graph 1, two relus). */
extern struct ss_fixture {
    char *root;
    fxtap_dump *dump; /* NULL: the test has closed it */
    fxtap_capture *capture;
} fixture;
int ss_set_up(void **state);
int ss_tear_down(void **state);

/*
 * A graph of `n` relu operators, the first of placeholder x, each other of the previous one, registered under
 * `graph_id`.
 */
fxtap_capture *ss_capture(fxtap_dump *dump, uint32_t graph_id, size_t n);
/* A graph of operators with the given names. */
fxtap_capture *ss_named(fxtap_dump *dump, uint32_t graph_id, size_t n, const char *const *names);

fxtap_call *ss_begin(fxtap_capture *capture);
/* Node i of the graph (0: n0, or the first name). */
fxtap_slot ss_slot(fxtap_capture *capture, size_t i, fxtap_io io, const char *position);
fxtap_ticket ss_submit(fxtap_call *call, fxtap_slot slot, uint64_t stamp_us, const fxtap_view *view);
fxtap_ticket ss_floats(fxtap_call *call, fxtap_slot slot, uint64_t stamp_us, const float *values, size_t n);
/* One call of a graph of n relus on `values` (n_values), each of which is increased by one for each node. */
fxtap_status ss_run(fxtap_capture *capture, size_t n, float *values, size_t n_values, uint64_t *step_out);

/* The first column of the first row of a query on the rank's index; -1 or "" without a row. */
int64_t ss_int(const char *root, const char *sql);
const char *ss_text(const char *root, const char *sql); /* overwritten by the next call */

/*
 * Checks a dump of one rank against its index: the file of each row exists, whole, with the recorded shape and hash,
 * and each file of a step has a row. Returns the number of files.
 */
size_t ss_check(const char *root);

size_t ss_count_names(const char *folder, const char *substring);
size_t ss_count_descriptors(void);

#endif
