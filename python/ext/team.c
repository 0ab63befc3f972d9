#include "team.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_THREADS 0
/* Linux's flag in the ninth field of proc_pid_stat(5): forked, and no program was executed since. */
#define PF_FORKNOEXEC 0x40u

static int (*max_threads)(void);
static void (*parallel)(void (*work)(void *), void *argument, unsigned n_threads, unsigned flags);
static bool is_child;

static void note_child(void)
{
    is_child = true;
}

/* Forked before we were loaded: torch may have had a team in the parent, and would wait for its threads forever. */
static bool was_forked(void)
{
    FILE *file = fopen("/proc/self/stat", "r");
    if (file == NULL) {
        return false;
    }
    char line[512];
    size_t n_bytes = fread(line, 1, sizeof line - 1, file);
    fclose(file);
    line[n_bytes] = '\0';
    const char *at = strrchr(line, ')');                     /* the name may contain spaces and parentheses */
    for (int field = 3; at != NULL && field <= 9; field++) { /* the ninth holds the flags */
        at = strchr(at + 1, ' ');
    }
    unsigned flags = 0;
    for (at += at != NULL; at != NULL && *at >= '0' && *at <= '9'; at++) {
        flags = flags * 10 + (unsigned)(*at - '0');
    }
    return (flags & PF_FORKNOEXEC) != 0;
}

static void register_child(void)
{
    pthread_atfork(NULL, NULL, note_child);
    is_child = was_forked();
}

void fx_team_watch_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, register_child);
}

/* ISO C does not convert object pointers to function pointers; POSIX guarantees the same representation. */
static bool find(const char *name, void *function_out)
{
    void *address = dlsym(RTLD_DEFAULT, name);
    memcpy(function_out, &address, sizeof address);
    return address != NULL;
}

static int size(void)
{
    return max_threads();
}

static void run(void (*work)(void *), void *argument)
{
    parallel(work, argument, DEFAULT_THREADS, 0);
}

const fxtap_team *fx_team(int torch_threads)
{
    static const fxtap_team team = {size, run};
    if (is_child || !find("GOMP_parallel", &parallel) || !find("omp_get_max_threads", &max_threads)) {
        return NULL;
    }
    return max_threads() == torch_threads ? &team : NULL;
}
