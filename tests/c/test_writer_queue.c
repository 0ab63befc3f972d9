/* Callers that wait for each other through the queue, with real threads: none sleeps while a job is queued. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "support_cmocka.h"
#include "support_store.h"
#include "support_tree.h"
#include "util/system.h"
#include "writer/dump.h"

#define PATIENCE_S 10
#define ROOM_BYTES 4096
#define TEAM_BYTES ((uint64_t)16 << 20)

static int team_size;

static int size(void)
{
    return team_size;
}

static void run(void (*work)(void *), void *argument)
{
    work(argument);
}

static const fxtap_team team = {size, run};

/* n_threads workers; 0: none, the team uses every processor. */
static fxtap_dump *open_queue(const char *root, int32_t n_threads, uint64_t queue_bytes)
{
    fxtap_dump_options options = ss_options(root);
    options.n_threads = n_threads;
    options.team = n_threads == 0 ? &team : NULL;
    options.queue_bytes = queue_bytes;
    team_size = (int)fx_processor_count();
    return ss_open(&options);
}

typedef struct waiter {
    fxtap_capture *capture;
    uint64_t n_bytes;
    fxtap_status status;
    pthread_t thread;
} waiter;

static void *reserve_and_end(void *argument)
{
    waiter *self = argument;
    fxtap_call *call = NULL;
    self->status = fxtap_call_begin(self->capture, &call);
    if (self->status == FXTAP_OK) {
        self->status = fxtap_call_reserve(call, self->n_bytes, true);
        fxtap_status ended = fxtap_call_end(call, NULL);
        self->status = self->status == FXTAP_OK ? ended : self->status;
    }
    return NULL;
}

/* Starts a thread that waits for space, and returns once it sleeps. */
static void start(waiter *self, fxtap_dump *dump)
{
    unsigned n_waiting = 0;
    assert_int_equal(pthread_create(&self->thread, NULL, reserve_and_end, self), 0);
    for (int i = 0; i < PATIENCE_S * 1000 && n_waiting == 0; i++) {
        usleep(1000);
        pthread_mutex_lock(&dump->queue.lock);
        n_waiting = dump->queue.callers.n;
        pthread_mutex_unlock(&dump->queue.lock);
    }
    assert_int_equal(n_waiting, 1);
}

static void expect_end(const waiter *self)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    if (pthread_timedjoin_np(self->thread, NULL, &until) != 0) {
        fail_msg("the thread that waits for room is not woken");
    }
    assert_int_equal(self->status, FXTAP_OK);
}

/* One thread holds all the space, another waits for some; the first submits and waits for the other. */
static void expect_submit_wakes(int32_t n_threads)
{
    static const float values[ROOM_BYTES / sizeof(float)];
    char *root = tree_create();
    fxtap_dump *dump = open_queue(root, n_threads, ROOM_BYTES);
    fxtap_capture *capture = ss_capture(dump, 1, 1);
    waiter other = {.capture = ss_capture(dump, 2, 1), .n_bytes = 1};
    fxtap_call *first = ss_begin(capture);
    ss_floats(first, ss_slot(capture, 0, FXTAP_INPUT, "0"), 1, values, 1); /* the workers start, and become idle */
    assert_int_equal(fxtap_call_end(first, NULL), FXTAP_OK);
    fxtap_call *call = ss_begin(capture);
    fxtap_submission submission = {
        .struct_size = sizeof submission,
        .slot = ss_slot(capture, 0, FXTAP_OUTPUT, "0"),
        .stamp_us = 1,
        .view = {.data = values, .dtype = FXTAP_FLOAT32, .ndim = 1, .shape = (int64_t[]){ROOM_BYTES / sizeof(float)}}};
    assert_int_equal(fxtap_call_reserve(call, ROOM_BYTES, true), FXTAP_OK);
    start(&other, dump);
    assert_int_equal(fxtap_call_submit(call, &submission, NULL), FXTAP_OK);
    expect_end(&other);
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
    assert_int_equal(ss_check(root), 2);
    tree_remove(root);
}

static void test_submit_wakes_without_workers(void **state)
{
    (void)state;
    expect_submit_wakes(0);
}

static void test_submit_wakes_with_idle_workers(void **state)
{
    (void)state;
    expect_submit_wakes(2);
}

/* When the team becomes smaller the limit rises: a caller that waits for space gets it. */
static void test_more_room_wakes(void **state)
{
    (void)state;
    char *root = tree_create();
    fxtap_dump *dump = open_queue(root, 0, 4 * TEAM_BYTES);
    fxtap_capture *capture = ss_capture(dump, 1, 1);
    waiter other = {.capture = ss_capture(dump, 2, 1), .n_bytes = 1};
    fxtap_call *call = ss_begin(capture);
    assert_int_equal(fxtap_call_reserve(call, TEAM_BYTES, true), FXTAP_OK);
    start(&other, dump);
    team_size = 0;
    assert_int_equal(fxtap_call_end(ss_begin(capture), NULL), FXTAP_OK);
    expect_end(&other);
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
    tree_remove(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_submit_wakes_without_workers),
        cmocka_unit_test(test_submit_wakes_with_idle_workers),
        cmocka_unit_test(test_more_room_wakes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
