/* ls_rows.c - the operators of a step as rows, in the order that was asked for. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "ls.h"

const char ls_sort_keys[] = "order, node, target, bytes, absmax, mean, std, nonfinite";

bool ls_sort_is_known(const char *key)
{
    static const char *const keys[] = {"order", "node", "target", "bytes", "absmax", "mean", "std", "nonfinite"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(key, keys[i]) == 0) {
            return true;
        }
    }
    return false;
}

void ls_load(const ls_options *options, fxtap_tensor_list *list, size_t i)
{
    const fxtap_tensor_info *info = fxtap_tensor_list_at(list, i);
    if (info->path == NULL || (info->has_meta && (info->has_stats || options->no_stats))) {
        return;
    }
    if (options->no_stats) {
        (void)fxtap_tensor_load_meta(list, i);
    } else {
        (void)fxtap_tensor_load_stats(list, i);
    }
}

static uint64_t count_non_finite(const fxtap_tensor_info *info)
{
    const fxtap_stats *stats = &info->stats;
    return info->has_stats ? stats->nan_count + stats->pos_inf_count + stats->neg_inf_count : 0;
}

static double key_of(const char *sort, const ls_row *row)
{
    const fxtap_stats *stats = row->output != NULL && row->output->has_stats ? &row->output->stats : NULL;
    if (strcmp(sort, "bytes") == 0) {
        return (double)row->bytes;
    }
    if (strcmp(sort, "nonfinite") == 0) {
        return (double)row->n_non_finite;
    }
    if (stats == NULL) {
        return NAN;
    }
    return strcmp(sort, "absmax") == 0 ? stats->abs_max : strcmp(sort, "mean") == 0 ? stats->mean : stats->std;
}

static void fill_row(const ls_options *options, fxtap_tensor_list *list, ls_row *row)
{
    for (size_t i = row->first; i < row->end; i++) {
        const fxtap_tensor_info *info = fxtap_tensor_list_at(list, i);
        if (info->io != FXTAP_INPUT || options->is_long) {
            ls_load(options, list, i);
        }
        row->bytes += info->has_meta ? info->bytes : 0;
        if (info->io != FXTAP_INPUT && info->skipped == NULL) {
            row->output = row->output == NULL ? info : row->output;
            row->n_outputs++;
            row->n_non_finite += count_non_finite(info);
        }
    }
}

/* ---- order ---- */

static int compare_numbers(const ls_row *x, const ls_row *y)
{
    if (isnan(x->key) || isnan(y->key)) {
        return isnan(x->key) - isnan(y->key);
    }
    return x->key > y->key ? -1 : x->key < y->key; /* the largest first */
}

static int by_order(const ls_row *x, const ls_row *y)
{
    return x->node->order < y->node->order ? -1 : x->node->order > y->node->order;
}

static int compare_by_number(const void *a, const void *b)
{
    int order = compare_numbers(a, b);
    return order != 0 ? order : by_order(a, b);
}

static int compare_by_name(const void *a, const void *b)
{
    int order = strcmp(((const ls_row *)a)->node->name, ((const ls_row *)b)->node->name);
    return order != 0 ? order : by_order(a, b);
}

static int compare_by_target(const void *a, const void *b)
{
    int order = strcmp(((const ls_row *)a)->node->target, ((const ls_row *)b)->node->target);
    return order != 0 ? order : by_order(a, b);
}

static void sort_rows(const ls_options *options, ls_row *rows, size_t n)
{
    const char *sort = options->sort != NULL ? options->sort : "order";
    if (strcmp(sort, "node") == 0) {
        qsort(rows, n, sizeof *rows, compare_by_name);
    } else if (strcmp(sort, "target") == 0) {
        qsort(rows, n, sizeof *rows, compare_by_target);
    } else if (strcmp(sort, "order") != 0) {
        for (size_t i = 0; i < n; i++) {
            rows[i].key = key_of(sort, &rows[i]);
        }
        qsort(rows, n, sizeof *rows, compare_by_number);
    }
    for (size_t i = 0; options->reverse && i < n / 2; i++) {
        ls_row swapped = rows[i];
        rows[i] = rows[n - 1 - i];
        rows[n - 1 - i] = swapped;
    }
}

ls_row *ls_collect(const ls_options *options, fxtap_tensor_list *list, const fxtap_step_info *step, size_t *n_out)
{
    size_t count = fxtap_tensor_list_count(list), n = 0, capacity = 0;
    ls_row *rows = NULL;
    for (size_t i = 0; i < count;) {
        const fxtap_tensor_info *info = fxtap_tensor_list_at(list, i);
        size_t end = i + 1;
        while (end < count && fxtap_tensor_list_at(list, end)->node == info->node &&
               fxtap_tensor_list_at(list, end)->step == info->step) {
            end++;
        }
        if (info->step == step && info->node != NULL) {
            if (n == capacity) {
                capacity = capacity > 0 ? capacity * 2 : 64;
                rows = must_realloc(rows, capacity, sizeof *rows);
            }
            rows[n] = (ls_row){.node = info->node, .first = i, .end = end};
            fill_row(options, list, &rows[n++]);
        }
        i = end;
    }
    if (n > 0) {
        sort_rows(options, rows, n);
    }
    *n_out = n;
    return rows;
}
