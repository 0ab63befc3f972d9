#include "python.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"

#define LOOK_EVERY_MS 200 /* for a signal that came just before poll() */

/* python3 in the folder of this program, into whose environment it was installed, or "". */
static void find_neighbour(char path[PATH_MAX])
{
    ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 16);
    path[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash == NULL) {
        path[0] = '\0';
        return;
    }
    strcpy(slash + 1, "python3");
    if (access(path, X_OK) != 0) {
        path[0] = '\0';
    }
}

void python_begin(python_line *line, const char *chosen)
{
    char buffer[PATH_MAX];
    const char *named = chosen != NULL ? chosen : getenv("FXTAP_PYTHON");
    const char *home = getenv("HOME");
    *line = (python_line){0};
    if (named != NULL && named[0] != '\0') {
        bool is_at_home = strncmp(named, "~/", 2) == 0 && home != NULL; /* for --python=~/venv/bin/python3 */
        python_add(line, is_at_home && snprintf(buffer, PATH_MAX, "%s%s", home, named + 1) < PATH_MAX ? buffer : named);
        return;
    }
    find_neighbour(buffer);
    python_add(line, buffer[0] != '\0' ? buffer : "python3");
}

void python_add(python_line *line, const char *word)
{
    line->words = must_realloc(line->words, (size_t)line->count + 2, sizeof *line->words);
    size_t n_bytes = strlen(word) + 1;
    line->words[line->count++] = memcpy(must_realloc(NULL, n_bytes, 1), word, n_bytes);
    line->words[line->count] = NULL;
}

void python_add_number(python_line *line, const char *option, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, number);
    python_add_text(line, option, number >= 0 ? text : NULL);
}

void python_add_text(python_line *line, const char *option, const char *text)
{
    if (text != NULL) {
        python_add(line, option);
        python_add(line, text);
    }
}

void python_add_command(python_line *line, const char *command_name)
{
    python_add(line, "-P");
    python_add(line, "-m");
    python_add(line, "fxtap");
    python_add(line, command_name);
}

void python_clear(python_line *line)
{
    for (int i = 0; i < line->count; i++) {
        free(line->words[i]);
    }
    free(line->words);
    *line = (python_line){0};
}

bool python_has(const python_line *line, const char *module)
{
    static const char code[] = "import sys, importlib.util as u; s = u.find_spec(sys.argv[1]); "
                               "sys.exit(77 if s is None or s.origin is None else 0)";
    const char *python = line->words[0];
    char *words[] = {line->words[0], strdup("-c"), strdup(code), strdup(module), NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status = 0;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (posix_spawnp(&child, python, &actions, NULL, words, environ) == 0) {
        while (waitpid(child, &status, 0) == -1 && errno == EINTR) {
        }
    }
    posix_spawn_file_actions_destroy(&actions);
    for (size_t i = 1; words[i] != NULL; i++) {
        free(words[i]);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        report_error("%s has no module %s: install it there (%s -m pip install %s), or name another Python by "
                     "--python or FXTAP_PYTHON",
                     python, module, python, strcmp(module, "fxtap") == 0 ? "., in fxtap's sources" : module);
        return false;
    }
    return true;
}

/* Reads until all writers have closed the pipe; passes the first signal on to the child, once. */
static void drain(int fd, pid_t child, fxtap_buffer *out)
{
    bool is_told = false;
    struct pollfd waiting = {.fd = fd, .events = POLLIN};
    for (;;) {
        if (was_interrupted() && !is_told) {
            kill(child, SIGINT);
            is_told = true;
        }
        if (poll(&waiting, 1, LOOK_EVERY_MS) <= 0) {
            continue;
        }
        char block[65536];
        ssize_t n = read(fd, block, sizeof block);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            return;
        }
        if (n > 0) {
            fxtap_buffer_append(out, block, (size_t)n);
        }
    }
}

/* The child unblocks both as soon as it can handle them. */
static int spawn_with_signals_blocked(char **words, pid_t *child)
{
    sigset_t both;
    sigemptyset(&both);
    sigaddset(&both, SIGINT);
    sigaddset(&both, SIGTERM);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &both);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    int error = posix_spawnp(child, words[0], NULL, &attributes, words, environ);
    posix_spawnattr_destroy(&attributes);
    return error;
}

int python_collect(python_line *line, fxtap_buffer *out)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return report_error("cannot make a pipe: %s", strerror(errno));
    }
    int for_child = fcntl(ends[1], F_DUPFD, 3); /* without FD_CLOEXEC */
    python_add_number(line, "--out-fd", for_child);
    pid_t child;
    int error = spawn_with_signals_blocked(line->words, &child);
    close(for_child);
    close(ends[1]);
    int status = 0;
    if (error == 0) {
        drain(ends[0], child, out);
        while (waitpid(child, &status, 0) == -1 && errno == EINTR) {
        }
    }
    close(ends[0]);
    if (error != 0) {
        return report_error("cannot run %s: %s", line->words[0], strerror(error));
    }
    if (WIFSIGNALED(status) && !was_interrupted()) {
        return report_error("%s ended by signal %d (%s)", line->words[0], WTERMSIG(status),
                            strsignal(WTERMSIG(status)));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_TROUBLE;
}

int python_verify(python_line *line, shard_list *out)
{
    fxtap_buffer *data = shards_add(out);
    int result = EXIT_TROUBLE;
    if (python_has(line, "fxtap") && python_has(line, "torch")) {
        progress_begin("verifying");
        result = python_collect(line, data);
        progress_end();
    }
    if (result == EXIT_SAME && fxtap_buffer_status(data) != FXTAP_OK) {
        result = report_error("out of memory");
    }
    shards_end(out);
    return result;
}

int python_execute(python_line *line)
{
    execvp(line->words[0], line->words);
    return report_error("cannot run %s: %s", line->words[0], strerror(errno));
}
