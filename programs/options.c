#include "options.h"

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"

#define MAX_OPTIONS 64
#define FIRST_CODE 256 /* getopt values of options without a letter */

/* ---- help ---- */

static void append_option(fxtap_buffer *out, char letter, const char *name, const char *value, const char *help)
{
    char left[64];
    snprintf(left, sizeof left, "%c%c%s --%s%s%s", letter != 0 ? '-' : ' ', letter != 0 ? letter : ' ',
             letter != 0 ? "," : " ", name, value != NULL ? " " : "", value != NULL ? value : "");
    fxtap_buffer_printf(out, strlen(left) <= 22 ? "  %-22s  " : "  %s\n                          ", left);
    for (const char *line = help; *line != '\0';) {
        size_t length = strcspn(line, "\n");
        fxtap_buffer_append(out, line, length);
        fxtap_buffer_text(out, "\n");
        line += length + (line[length] == '\n');
        fxtap_buffer_text(out, *line != '\0' ? "                          " : "");
    }
}

static int show_help(const command_usage *usage)
{
    fxtap_buffer out;
    fxtap_buffer_init(&out);
    fxtap_buffer_printf(&out, "usage: fxtap %s [options] %s\n\n%s\noptions:\n", usage->command, usage->operands,
                        usage->about);
    for (size_t i = 0; i < usage->n_options; i++) {
        const option_spec *option = &usage->options[i];
        if (option->kind == OPTION_HEADING) {
            fxtap_buffer_printf(&out, "\n%s\n", option->help);
        } else if (option->help != NULL) {
            append_option(&out, option->letter, option->name, option->value, option->help);
        }
    }
    append_option(&out, 'h', "help", NULL, "show this help");
    if (usage->more != NULL) {
        fxtap_buffer_printf(&out, "\n%s", usage->more);
    }
    return flush_buffer(&out) ? EXIT_SUCCESS : EXIT_TROUBLE;
}

/* ---- values ---- */

static void take_one_of_many(text_list *list, const char *text)
{
    list->texts = must_realloc(list->texts, list->count + 1, sizeof *list->texts);
    list->texts[list->count++] = text;
}

static bool take_value(const command_usage *usage, const option_spec *option, const char *text, int *status_out)
{
    option_pair *pair = option->target;
    if (text != NULL && text[0] == '\0') {
        *status_out = usage_error(usage->command, "--%s needs a value, not \"\"", option->name);
        return false;
    }
    switch (option->kind) {
    case OPTION_HEADING:
    case OPTION_REST:
        return true;
    case OPTION_FLAG:
        *(bool *)option->target = true;
        return true;
    case OPTION_TEXT:
        *(const char **)option->target = text;
        return true;
    case OPTION_TEXTS:
        take_one_of_many(option->target, text);
        return true;
    case OPTION_INT:
        if (parse_int64(text, 0, INT64_MAX, option->target)) {
            return true;
        }
        break;
    case OPTION_AMOUNT:
        if (parse_amount(text, option->target)) {
            return true;
        }
        break;
    case OPTION_PAIR:
        if (parse_pair(text, pair->low, pair->high, pair->first, pair->second)) {
            return true;
        }
        *status_out =
            usage_error(usage->command, "--%s takes A or A:B (two numbers from %lld on, no range), not \"%s\"",
                        option->name, (long long)pair->low, text);
        return false;
    }
    *status_out = usage_error(usage->command, "--%s takes a number from 0 on, not \"%s\"", option->name, text);
    return false;
}

/* ---- parsing ---- */

static int refuse_unknown(const char *command_name, const struct option *table, const char *argument)
{
    const char *names[MAX_OPTIONS + 2];
    size_t n_names = 0;
    if (strncmp(argument, "--", 2) != 0) {
        return usage_error(command_name, "unknown option \"-%c\"", optopt);
    }
    for (; table[n_names].name != NULL; n_names++) {
        names[n_names] = table[n_names].name;
    }
    char typed[64];
    snprintf(typed, sizeof typed, "%.*s", (int)strcspn(argument + 2, "="), argument + 2);
    const char *nearest = fxtap_nearest_name(typed, names, n_names);
    if (nearest == NULL) {
        return usage_error(command_name, "unknown option \"--%s\"", typed);
    }
    return usage_error(command_name, "unknown option \"--%s\", did you mean --%s?", typed, nearest);
}

/* Builds getopt's two tables. `letters` has room for 3 bytes per option and 4 more. */
static void make_tables(const command_usage *usage, char *letters, struct option *table)
{
    if (usage->stops_at_operand) {
        *letters++ = '+';
    }
    *letters++ = ':'; /* distinguishes a missing value from an unknown option */
    for (size_t i = 0; i < usage->n_options; i++) {
        const option_spec *option = &usage->options[i];
        if (option->kind == OPTION_HEADING) {
            continue;
        }
        bool has_value = option->kind != OPTION_FLAG && option->kind != OPTION_REST;
        *table++ =
            (struct option){option->name, has_value ? required_argument : no_argument, NULL, FIRST_CODE + (int)i};
        if (option->letter != 0) {
            *letters++ = option->letter;
            if (has_value) {
                *letters++ = ':';
            }
        }
    }
    *table++ = (struct option){"help", no_argument, NULL, 'h'};
    *table = (struct option){0};
    *letters++ = 'h';
    *letters = '\0';
}

static const option_spec *option_of_code(const command_usage *usage, int code)
{
    for (size_t i = 0; i < usage->n_options; i++) {
        if (code == FIRST_CODE + (int)i || (code < FIRST_CODE && code == usage->options[i].letter)) {
            return &usage->options[i];
        }
    }
    return NULL;
}

bool options_parse(const command_usage *usage, int argc, char **argv, int *first_out, int *status_out)
{
    char letters[3 * MAX_OPTIONS + 8];
    struct option table[MAX_OPTIONS + 2];
    make_tables(usage, letters, table);
    opterr = 0;
    optind = 1;
    for (;;) {
        int before = optind;
        int code = getopt_long(argc, argv, letters, table, NULL);
        if (code == -1) {
            *first_out = optind;
            return true;
        }
        if (code == 'h') {
            *status_out = show_help(usage);
            return false;
        }
        if (code == ':') {
            *status_out = usage_error(usage->command, "%s needs a value", argv[optind - 1]);
            return false;
        }
        const option_spec *option = code == '?' ? NULL : option_of_code(usage, code);
        if (option == NULL) {
            bool is_long = optind > before && strncmp(argv[optind - 1], "--", 2) == 0;
            *status_out = refuse_unknown(usage->command, table, is_long ? argv[optind - 1] : "-");
            return false;
        }
        if (option->kind == OPTION_REST) {
            *first_out = optind - 1;
            return true;
        }
        if (!take_value(usage, option, optarg, status_out)) {
            return false;
        }
    }
}
