#include "support_compare.h"

#include <string.h>

#include "support_cmocka.h"
#include "support_tree.h"

int sc_make_sides(void **state)
{
    static sides both;
    both = (sides){tree_create(), tree_create()};
    *state = &both;
    return 0;
}

int sc_remove_sides(void **state)
{
    sides *both = *state;
    tree_remove(both->golden);
    tree_remove(both->target);
    return 0;
}

fxtap_status sc_try(const char *golden, const char *target, const fxtap_compare_options *options, fxtap_report **out)
{
    fxtap_reader *left = NULL, *right = NULL;
    fxtap_status status = fxtap_reader_open(golden, &left);
    if (status == FXTAP_OK) {
        status = fxtap_reader_open(target, &right);
    }
    if (status == FXTAP_OK) {
        status = fxtap_compare(left, right, options, out);
    }
    fxtap_reader_close(left);
    fxtap_reader_close(right);
    return status;
}

fxtap_report *sc_compare(const char *golden, const char *target, const fxtap_compare_options *options)
{
    fxtap_compare_options defaults;
    fxtap_compare_options_init(&defaults);
    fxtap_report *report = NULL;
    if (sc_try(golden, target, options != NULL ? options : &defaults, &report) != FXTAP_OK) {
        fail_msg("%s", fxtap_error_message());
    }
    return report;
}

const fxtap_pair *sc_find(const fxtap_report *report, const char *name)
{
    for (size_t i = 0; i < fxtap_report_pair_count(report); i++) {
        if (strcmp(fxtap_report_pair(report, i)->name, name) == 0) {
            return fxtap_report_pair(report, i);
        }
    }
    fail_msg("no pair is called %s", name);
    return NULL;
}
