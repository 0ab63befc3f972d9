/*
 * options.h - a command's options and operands, parsed by getopt_long: --help, and a suggestion for an unknown option.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum option_kind {
    OPTION_FLAG,    /* bool * */
    OPTION_TEXT,    /* const char ** */
    OPTION_INT,     /* int64_t *, >= 0 */
    OPTION_AMOUNT,  /* double *, finite and >= 0 */
    OPTION_PAIR,    /* option_pair * */
    OPTION_TEXTS,   /* text_list *: may be repeated */
    OPTION_HEADING, /* not an option: a line of the help */
    OPTION_REST     /* it and everything after it are operands: run's -m MODULE ARGS */
} option_kind;

typedef struct text_list {
    const char **texts;
    size_t count;
} text_list;

typedef struct option_pair { /* "A" or "A:B"; a lone A stands for both */
    int64_t low, high;
    int64_t *first, *second;
} option_pair;

typedef struct option_spec {
    char letter;      /* 0: none */
    const char *name; /* without dashes; NULL: a heading */
    option_kind kind;
    void *target;
    const char *value; /* its name in the help: "GLOB" */
    const char *help;  /* may have line breaks; NULL: hidden */
} option_spec;

typedef struct command_usage {
    const char *command;  /* "ls" */
    const char *operands; /* "DUMP" */
    const char *about;    /* whole lines */
    const option_spec *options;
    size_t n_options;
    const char *more;      /* whole lines after the options, or NULL */
    bool stops_at_operand; /* stop at the first operand: run's script and its arguments */
} command_usage;

/*
 * True: continue; the operands start at argv[*first_out]. False: exit with *status_out (help or an error was printed).
 */
bool options_parse(const command_usage *usage, int argc, char **argv, int *first_out, int *status_out);

#endif
