/*
 * options.h - a command's options and operands, over getopt_long: parsing, --help, and the nearest name where one is
 * not known.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum option_kind {
    OPTION_FLAG,   /* bool * */
    OPTION_TEXT,   /* const char ** */
    OPTION_INT,    /* int64_t *, from 0 on */
    OPTION_AMOUNT, /* double *, finite and from 0 on */
    OPTION_PAIR,   /* option_pair * */
    OPTION_TEXTS,  /* text_list *: may be given several times */
    OPTION_HEADING, /* no option: a line of the help */
    OPTION_REST    /* it and all that follows are operands: run's -m MODULE ARGS */
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
    const char *name; /* without the dashes; NULL: a heading */
    option_kind kind;
    void *target;
    const char *value; /* what the help calls it: "GLOB" */
    const char *help;  /* may have line breaks; NULL: not shown */
} option_spec;

typedef struct command_usage {
    const char *command;  /* "ls" */
    const char *operands; /* "DUMP" */
    const char *about;    /* whole lines */
    const option_spec *options;
    size_t n_options;
    const char *more;    /* whole lines below the options, or NULL */
    bool stops_at_operand; /* what follows the first operand is not ours: run's script and its arguments */
} command_usage;

/*
 * True: go on, operands are argv[*first_out] on. False: end with *status_out (help was shown, or what is wrong was
 * said).
 */
bool options_parse(const command_usage *usage, int argc, char **argv, int *first_out, int *status_out);

#endif
