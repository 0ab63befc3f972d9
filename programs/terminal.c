/* terminal.c - the progress line, and signals to stop. */
#include "command.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define FIRST_SHOWN_NS 300000000LL /* shorter work shows no progress */
#define SHOWN_EVERY_NS 100000000LL

static struct {
    const char *what;
    bool is_shown;
    int64_t shown_ns;
} progress;

static volatile sig_atomic_t caught_signal;
static struct sigaction old_interrupt, old_terminate;

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void note_signal(int number)
{
    caught_signal = number;
}

void progress_begin(const char *what)
{
    progress.what = what;
    progress.is_shown = false;
    progress.shown_ns = now_ns() + FIRST_SHOWN_NS - SHOWN_EVERY_NS;
    struct sigaction action = {.sa_handler = note_signal};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &old_interrupt);
    sigaction(SIGTERM, &action, &old_terminate);
    if (old_interrupt.sa_handler == SIG_IGN) {
        sigaction(SIGINT, &old_interrupt, NULL); /* in the background of a shell without job control */
    }
}

bool progress_show(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    int64_t now = now_ns();
    if (now - progress.shown_ns >= SHOWN_EVERY_NS && isatty(STDERR_FILENO) == 1) {
        fprintf(stderr, "\r\033[K%s %llu of %llu", progress.what, (unsigned long long)done, (unsigned long long)total);
        fflush(stderr);
        progress.is_shown = true;
        progress.shown_ns = now;
    }
    return caught_signal == 0;
}

void progress_end(void)
{
    if (progress.is_shown) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
    }
    sigaction(SIGINT, &old_interrupt, NULL);
    sigaction(SIGTERM, &old_terminate, NULL);
}

bool was_interrupted(void)
{
    return caught_signal != 0;
}

int end_interrupted(void)
{
    signal(caught_signal, SIG_DFL);
    raise(caught_signal);
    return EXIT_TROUBLE;
}
