/*
 * The queue of jobs under thousands of schedules. No thread sleeps forever, every job runs once, all space is returned;
 * and if one of the queue's wake-ups is omitted, the scheduler detects the thread that never wakes.
 */
#include "support_seam.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define fx_job_run run_job /* not instrumented: only the queue is under test */
#include "support_cmocka.h"
#include "writer/queue.c"

#ifdef __SANITIZE_THREAD__ /* ten times as slow, without benefit if threads run one at a time */
#define MANY 200
#else
#define MANY 2000 /* schedules in which no thread may sleep forever */
#endif
#define ENOUGH 1000 /* schedules in which an omitted wake-up must be detected */
#define ROOM 4096

enum { N_CALLERS = 3, N_JOBS = 6 };

/* The wake-up that is omitted. */
typedef enum omission { NONE, IN_ADD, IN_UNRESERVE, IN_ADAPT, IN_FINISH, IN_STOP } omission;

typedef struct world {
    fx_queue queue;
    unsigned n_threads; /* 0: a team of all processors */
    omission omission;
    uint64_t random;
    fxtap_call calls[N_CALLERS];
    fx_value values[N_CALLERS][N_JOBS];
    fx_job jobs[N_CALLERS][N_JOBS];
    unsigned n_added;
    const char *failure; /* NULL: none */
} world;

static world *now; /* that jobs run in */
static unsigned n_run;
static int team_size;

/* ---- the queue's environment ---- */

void run_job(fx_job *job, void **scratch, fx_job **finished)
{
    (void)scratch;
    schedule_point();
    if (job->is_written) {
        now->failure = "a job ran twice";
    }
    n_run++;
    job->is_written = true;
    job->next = *finished;
    *finished = job;
    if (now->omission == IN_FINISH) {
        schedule_drop_next_broadcast();
    }
}

static int size(void)
{
    return team_size;
}

typedef struct task {
    void (*work)(void *);
    void *argument;
} task;

static void *run_task(void *argument)
{
    task *self = argument;
    self->work(self->argument);
    return NULL;
}

static void run_team(void (*work)(void *), void *argument)
{
    task other = {work, argument};
    pthread_t thread;
    pthread_create(&thread, NULL, run_task, &other);
    work(argument);
    pthread_join(thread, NULL);
}

static const fxtap_team team = {size, run_team};

static void open_world(world *w, uint64_t limit_bytes)
{
    now = w;
    n_run = 0;
    team_size = (int)fx_processor_count() + 1;
    if (fx_queue_init(&w->queue, limit_bytes, w->n_threads, w->n_threads == 0 ? &team : NULL) != FXTAP_OK) {
        abort();
    }
    fx_queue_adapt(&w->queue);
}

/* Between begin() and end() the selected wake-up is omitted. */
static void begin(const world *w, omission where)
{
    schedule_drop_broadcasts(w->omission == where);
}

static void end(void)
{
    schedule_drop_broadcasts(false);
}

static void close_world(world *w)
{
    begin(w, IN_STOP);
    fx_queue_stop(&w->queue);
    end();
    if (n_run != w->n_added) {
        w->failure = "not every job ran";
    } else if (w->queue.used_bytes != 0 || w->queue.n_pending != 0 || w->queue.n_queued != 0) {
        w->failure = "something is left in the queue";
    }
    for (size_t i = 0; i < N_CALLERS; i++) {
        if (w->calls[i].n_unfinished != 0) {
            w->failure = "a call has unfinished jobs";
        }
    }
}

static void add(world *w, size_t caller, size_t i, uint64_t reserved_bytes, fx_value *value, bool is_first)
{
    fx_job *job = &w->jobs[caller][i];
    job->call = &w->calls[caller];
    job->value = value;
    job->is_first = is_first;
    job->reserved_bytes = reserved_bytes;
    job->first = is_first ? value : NULL;
    job->end = is_first ? value + 1 : NULL;
    value->saved_bytes = is_first ? reserved_bytes : value->saved_bytes;
    w->n_added++;
    begin(w, IN_ADD);
    fx_queue_add(&w->queue, job);
    end();
}

static void unreserve(world *w, uint64_t n_bytes)
{
    begin(w, IN_UNRESERVE);
    fx_queue_unreserve(&w->queue, n_bytes);
    end();
}

static void adapt(world *w)
{
    begin(w, IN_ADAPT);
    fx_queue_adapt(&w->queue);
    end();
}

/* ---- scenarios: one for each wake-up ---- */

static void *take_some(void *argument)
{
    world *w = argument;
    fx_queue_reserve(&w->queue, 1, true);
    fx_queue_unreserve(&w->queue, 1);
    return NULL;
}

/* One thread holds all the space, another waits for some; the first submits, and then waits for the other. */
static void submit_and_join(void *argument)
{
    world *w = argument;
    pthread_t other;
    open_world(w, ROOM);
    add(w, 0, 0, 0, &w->values[0][0], true); /* the workers start, and become idle */
    fx_queue_wait_call(&w->queue, &w->calls[0]);
    fx_queue_reserve(&w->queue, ROOM, true);
    pthread_create(&other, NULL, take_some, w);
    add(w, 0, 1, ROOM, &w->values[0][1], true);
    pthread_join(other, NULL);
    fx_queue_wait_call(&w->queue, &w->calls[0]);
    close_world(w);
}

static void unreserve_and_join(void *argument)
{
    world *w = argument;
    pthread_t other;
    open_world(w, ROOM);
    fx_queue_reserve(&w->queue, ROOM, true);
    pthread_create(&other, NULL, take_some, w);
    unreserve(w, ROOM);
    pthread_join(other, NULL);
    close_world(w);
}

static void adapt_and_join(void *argument)
{
    world *w = argument;
    pthread_t other;
    open_world(w, 4 * TEAM_BYTES);
    fx_queue_reserve(&w->queue, TEAM_BYTES, true);
    pthread_create(&other, NULL, take_some, w);
    team_size = 0;
    adapt(w);
    pthread_join(other, NULL);
    unreserve(w, TEAM_BYTES);
    close_world(w);
}

static void submit_and_wait(void *argument)
{
    world *w = argument;
    open_world(w, ROOM);
    fx_queue_reserve(&w->queue, ROOM, true);
    add(w, 0, 0, ROOM, &w->values[0][0], true);
    fx_queue_wait_value(&w->queue, &w->values[0][0]);
    fx_queue_wait_memory(&w->queue, &w->values[0][0], &w->values[0][1]);
    close_world(w);
}

/* ---- a scenario of random calls ---- */

static uint64_t draw(world *w, uint64_t n)
{
    w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (w->random >> 33) % n;
}

typedef struct caller {
    world *world;
    size_t number;
} caller;

static void save_first(world *w, size_t number, size_t i)
{
    uint64_t n_bytes = 1 + draw(w, ROOM);
    if (!fx_queue_reserve(&w->queue, n_bytes, draw(w, 4) == 0)) {
        fx_queue_reserve(&w->queue, n_bytes, true);
    }
    if (draw(w, 8) == 0) {
        unreserve(w, n_bytes);
        n_bytes = 0;
    }
    add(w, number, i, n_bytes, &w->values[number][i], true);
}

static void wait_for_something(world *w, size_t number, fx_value *value)
{
    switch (draw(w, 6)) {
    case 0:
        fx_queue_wait_value(&w->queue, value);
        break;
    case 1:
        fx_queue_wait_memory(&w->queue, value, value + 1);
        if (fx_queue_overlaps(&w->queue, value, value + 1)) {
            w->failure = "memory that was waited for is read";
        }
        break;
    case 2:
        team_size = (int)draw(w, fx_processor_count() + 2);
        adapt(w);
        break;
    case 3:
        fx_queue_wait_call(&w->queue, &w->calls[number]);
        break;
    default:
        break;
    }
}

typedef struct ending_call {
    world *world;
    size_t number;
    pthread_t owner;
} ending_call;

/* As at the end of a call: its owner waits for one value after another, the rest of the team for all of them. */
static void end_call(void *argument)
{
    ending_call *at = argument;
    fx_queue *queue = &at->world->queue;
    for (size_t i = 0; pthread_equal(pthread_self(), at->owner) && i < N_JOBS; i++) {
        if (at->world->jobs[at->number][i].is_first) {
            fx_queue_wait_value(queue, &at->world->values[at->number][i]);
        }
    }
    fx_queue_wait_call(queue, &at->world->calls[at->number]);
}

static void *run_caller(void *argument)
{
    caller *self = argument;
    world *w = self->world;
    fx_value *last = NULL;
    for (size_t i = 0; i < N_JOBS; i++) {
        if (last == NULL || draw(w, 3) > 0) {
            save_first(w, self->number, i);
            last = &w->values[self->number][i];
        } else {
            add(w, self->number, i, 0, last, false);
        }
        wait_for_something(w, self->number, last);
    }
    ending_call at = {w, self->number, pthread_self()};
    fx_queue_run_team(&w->queue, end_call, &at);
    if (w->calls[self->number].n_unfinished != 0) {
        w->failure = "a call ended before its jobs";
    }
    return NULL;
}

static void call_at_random(void *argument)
{
    world *w = argument;
    caller callers[N_CALLERS];
    pthread_t threads[N_CALLERS];
    open_world(w, ROOM);
    for (size_t i = 0; i < N_CALLERS; i++) {
        callers[i] = (caller){w, i};
        pthread_create(&threads[i], NULL, run_caller, &callers[i]);
    }
    for (size_t i = 0; i < N_CALLERS; i++) {
        pthread_join(threads[i], NULL);
    }
    close_world(w);
}

/* ---- exploring ---- */

/* Runs a scenario with one seed; false if threads were blocked forever. */
static bool try_seed(void (*scenario)(void *), uint64_t seed, unsigned n_threads, omission left_out)
{
    static world w;
    memset(&w, 0, sizeof w);
    w.n_threads = n_threads;
    w.omission = left_out;
    w.random = seed;
    schedule_outcome outcome = schedule_run(seed, scenario, &w);
    fx_queue_destroy(&w.queue);
    if (outcome.is_endless || w.failure != NULL || (outcome.is_stuck && left_out == NONE)) {
        fail_msg("seed %llu, %u workers: %s", (unsigned long long)seed, n_threads,
                 w.failure != NULL ? w.failure : outcome.blocked);
    }
    return !outcome.is_stuck;
}

static void expect_no_sleeper(void (*scenario)(void *), uint64_t n_seeds)
{
    for (uint64_t seed = 0; seed < n_seeds; seed++) {
        try_seed(scenario, seed, (unsigned)(seed % 3), NONE);
    }
}

static void expect_found(void (*scenario)(void *), unsigned n_threads, omission left_out)
{
    uint64_t seed = 0;
    while (seed < ENOUGH && try_seed(scenario, seed, n_threads, left_out)) {
        seed++;
    }
    if (seed == ENOUGH) {
        fail_msg("the missing wake-up is not found in %d schedules", ENOUGH);
    }
    print_message("found by seed %llu\n", (unsigned long long)seed);
}

static void test_nobody_sleeps_for_good(void **state)
{
    (void)state;
    expect_no_sleeper(submit_and_join, MANY / 8);
    expect_no_sleeper(unreserve_and_join, MANY / 8);
    expect_no_sleeper(submit_and_wait, MANY / 8);
    for (uint64_t seed = 0; seed < MANY / 8; seed++) {
        try_seed(adapt_and_join, seed, 0, NONE);
    }
    expect_no_sleeper(call_at_random, MANY);
}

static void test_submit_that_wakes_no_caller_is_found(void **state)
{
    (void)state;
    expect_found(submit_and_join, 0, IN_ADD);
    expect_found(submit_and_join, 2, IN_ADD);
}

static void test_other_missing_wake_ups_are_found(void **state)
{
    (void)state;
    expect_found(unreserve_and_join, 0, IN_UNRESERVE);
    expect_found(adapt_and_join, 0, IN_ADAPT);
    expect_found(submit_and_wait, 1, IN_FINISH);
    expect_found(submit_and_wait, 1, IN_STOP);
}

static void test_seeds_repeat(void **state)
{
    (void)state;
    static world w;
    for (uint64_t seed = 0; seed < 50; seed++) {
        unsigned n_points[2];
        for (size_t i = 0; i < 2; i++) {
            memset(&w, 0, sizeof w);
            w.n_threads = 1;
            w.random = seed;
            n_points[i] = schedule_run(seed, call_at_random, &w).n_points;
            fx_queue_destroy(&w.queue);
        }
        assert_int_equal(n_points[0], n_points[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_sleeps_for_good),
        cmocka_unit_test(test_submit_that_wakes_no_caller_is_found),
        cmocka_unit_test(test_other_missing_wake_ups_are_found),
        cmocka_unit_test(test_seeds_repeat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
