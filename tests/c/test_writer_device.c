/* Values whose memory the host may not touch, in other forms of values that it has read. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "fxtap/npy.h"
#include "support_cmocka.h"
#include "support_store.h"
#include "support_tree.h"

#define RANK "worldsize1_global_rank0"

static fxtap_status submit_unreadable(fxtap_call *call, fxtap_slot slot, const fxtap_view *view, fxtap_ticket ticket)
{
    const fxtap_submission submission = {.struct_size = sizeof submission,
                                         .slot = slot,
                                         .stamp_us = 1,
                                         .view = *view,
                                         .device = "npu:0",
                                         .same_bytes_as = ticket,
                                         .is_unreadable = true};
    return fxtap_call_submit(call, &submission, NULL);
}

/* Dumps a value that is on the host, and two other forms of it whose memory may not be touched. */
static void dump_forms_on_device(bool no_dedup, fxtap_dump_type type)
{
    char *root = tree_create();
    fxtap_dump_options options = ss_options(root);
    options.no_dedup = no_dedup;
    options.type = type;
    fxtap_dump *dump = ss_open(&options);
    fxtap_capture *capture = ss_capture(dump, 1, 1);
    fxtap_call *call = ss_begin(capture);
    void *device = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const float data[6] = {1, 2, 3, 4, 5, 6};
    const int64_t shape[] = {2, 3}, turned[] = {3, 2}, turned_strides[] = {1, 3}, flat[] = {6};
    fxtap_view whole = {.data = data, .dtype = FXTAP_FLOAT32, .ndim = 2, .shape = shape};
    fxtap_view transposed = {
        .data = device, .dtype = FXTAP_FLOAT32, .ndim = 2, .shape = turned, .strides = turned_strides};
    fxtap_view line = {.data = device, .dtype = FXTAP_FLOAT32, .ndim = 1, .shape = flat};
    fxtap_ticket ticket = ss_submit(call, ss_slot(capture, 0, FXTAP_INPUT, "0"), 1, &whole);
    assert_int_equal(submit_unreadable(call, ss_slot(capture, 0, FXTAP_INPUT, "1"), &transposed, ticket), FXTAP_OK);
    assert_int_equal(submit_unreadable(call, ss_slot(capture, 0, FXTAP_INPUT, "2"), &line, ticket), FXTAP_OK);
    assert_int_equal(submit_unreadable(call, ss_slot(capture, 0, FXTAP_INPUT, "3"), &line, 0), FXTAP_E_INVALID);
    assert_int_equal(fxtap_call_end(call, NULL), FXTAP_OK);
    fxtap_dump_close(dump);
    munmap(device, 4096);
    assert_int_equal(ss_int(root, "SELECT count(*) FROM tensors WHERE max = 6 AND min = 1 AND device = 'npu:0'"), 2);
    for (int i = 0; type == FXTAP_DUMP_NPY && i < 3; i++) {
        char query[80];
        snprintf(query, sizeof query, "SELECT file FROM tensors WHERE position = '%d'", i);
        fxtap_npy *npy;
        assert_int_equal(fxtap_npy_open(tree_path(root, RANK "/%s", ss_text(root, query)), &npy), FXTAP_OK);
        assert_memory_equal(fxtap_npy_view(npy)->data, data, sizeof data);
        fxtap_npy_close(npy);
    }
    tree_remove(root);
}

static void test_unreadable(void **state)
{
    (void)state;
    dump_forms_on_device(false, FXTAP_DUMP_NPY);
    dump_forms_on_device(true, FXTAP_DUMP_NPY);
    dump_forms_on_device(false, FXTAP_DUMP_STATS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unreadable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
