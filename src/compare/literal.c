/* literal.c - describes how a literal, a number or a short list, differs. */
#include <fcntl.h>
#include <string.h>

#include "compare/judge.h"
#include "tensor/npy_file.h"
#include "tensor/values.h"
#include "tensor/view.h"
#include "util/number.h"

#define MOST_SHOWN 8 /* elements of a list */

/* As in Python source: 1, 1.5, True. */
static void add_number(fxtap_buffer *out, fxtap_dtype dtype, double value)
{
    char text[FX_NUMBER_BYTES];
    fxtap_dtype_class class = fxtap_dtype_class_of(dtype);
    if (class == FXTAP_CLASS_BOOL) {
        fxtap_buffer_text(out, value != 0.0 ? "True" : "False");
    } else if (class == FXTAP_CLASS_FLOAT) {
        fx_double_text(value, text);
        fxtap_buffer_text(out, text);
    } else if (value < 0) {
        fxtap_buffer_printf(out, "%lld", (long long)value);
    } else {
        fxtap_buffer_printf(out, "%llu", (unsigned long long)value);
    }
}

static fxtap_status add_element(fxtap_buffer *out, const fxtap_view *view, uint64_t i)
{
    unsigned char element[16];
    fxtap_status status = fx_view_gather_rows(view, i, 1, element);
    if (status != FXTAP_OK) {
        return status;
    }
    if (view->dtype == FXTAP_INT64) { /* the end of a slice exceeds the precision of a float64 */
        char text[FX_NUMBER_BYTES];
        int64_t exact;
        memcpy(&exact, element, sizeof exact);
        fx_i64_text(exact, text);
        fxtap_buffer_text(out, text);
        return FXTAP_OK;
    }
    double value;
    fx_values_to_f64(fxtap_dtype_saved(view->dtype), element, 1, &value);
    add_number(out, view->dtype, value);
    return FXTAP_OK;
}

static bool is_real(fxtap_dtype dtype)
{
    fxtap_dtype_class class = fxtap_dtype_class_of(dtype);
    return class == FXTAP_CLASS_BOOL || class == FXTAP_CLASS_UINT || class == FXTAP_CLASS_INT ||
           class == FXTAP_CLASS_FLOAT;
}

/* "[1, 2]" or a single number; false if there are too many, or the elements are not numbers. */
static bool add_values(fxtap_buffer *out, const fxtap_view *view)
{
    uint64_t n;
    if (!is_real(view->dtype) || view->ndim > 1 || fxtap_view_count(view, &n) != FXTAP_OK || n > MOST_SHOWN) {
        return false;
    }
    fxtap_buffer_text(out, view->ndim == 0 ? "" : "[");
    for (uint64_t i = 0; i < n; i++) {
        fxtap_buffer_text(out, i > 0 ? ", " : "");
        if (add_element(out, view, i) != FXTAP_OK) {
            return false;
        }
    }
    fxtap_buffer_text(out, view->ndim == 0 ? "" : "]");
    return true;
}

/* From the file, which may be open, or, without a file, from the statistics of a single element. */
static bool add_side(fxtap_buffer *out, const fxtap_tensor_info *tensor, const fxtap_npy *open_file,
                     const fxtap_reader *reader)
{
    fxtap_npy *file;
    if (open_file != NULL) {
        return add_values(out, fxtap_npy_view(open_file));
    }
    if (tensor->path != NULL &&
        fx_npy_open_at(AT_FDCWD, tensor->path, tensor->path, fxtap_reader_flags(reader), &file) == FXTAP_OK) {
        bool is_added = add_values(out, fxtap_npy_view(file));
        fxtap_npy_close(file);
        return is_added;
    }
    bool is_number =
        tensor->path == NULL && tensor->has_meta && tensor->has_stats && tensor->ndim == 0 && is_real(tensor->dtype);
    if (is_number) {
        add_number(out, tensor->dtype, fx_only_value(&tensor->stats));
    }
    return is_number;
}

fxtap_status fx_describe_literal(fx_pair_job *job)
{
    const fxtap_tensor_info *golden = job->golden;
    bool is_named = golden->arg_name != NULL && golden->arg_name[0] != '\0';
    fxtap_buffer out;
    fxtap_buffer_init(&out);
    fxtap_buffer_printf(&out, "%s: golden ", is_named ? golden->arg_name : golden->position);
    bool is_complete = add_side(&out, golden, job->golden_file, job->comparison->golden.reader);
    fxtap_buffer_text(&out, ", target ");
    is_complete = is_complete && add_side(&out, job->target, job->target_file, job->comparison->target.reader);
    fxtap_status status = fxtap_buffer_status(&out);
    if (is_complete && status == FXTAP_OK) {
        status = fx_job_detail(job, job->pair->verdict, out.bytes);
    }
    fxtap_buffer_clear(&out);
    return status;
}
