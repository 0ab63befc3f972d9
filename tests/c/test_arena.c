/* test_arena.c - alignment, growth, large blocks, text, and every allocation failing once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "util/arena.h"
#include "util/memory.h"

static void blocks_are_aligned_and_apart(void **state)
{
    (void)state;
    fx_arena arena;
    fx_arena_init(&arena);
    unsigned char *blocks[2000];
    for (size_t i = 0; i < 2000; i++) {
        blocks[i] = fx_arena_alloc(&arena, i % 300);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] % 16, 0);
        memset(blocks[i], (int)(i % 251), i % 300);
    }
    for (size_t i = 0; i < 2000; i++) {
        for (size_t j = 0; j < i % 300; j++) {
            assert_int_equal(blocks[i][j], i % 251);
        }
    }
    fx_arena_clear(&arena);
}

static void large_blocks_leave_the_small_chunk_in_use(void **state)
{
    (void)state;
    fx_arena arena;
    fx_arena_init(&arena);
    assert_non_null(fx_arena_alloc(&arena, 1000000)); /* the first block */
    char *small = fx_arena_strdup(&arena, "abc");
    assert_non_null(fx_arena_alloc(&arena, 1000000));
    char *next = fx_arena_printf(&arena, "%s-%d", small, 7);
    assert_string_equal(next, "abc-7");
    assert_ptr_equal(next, small + 16);
    fx_arena_clear(&arena);
}

static void sizes_that_overflow_are_refused(void **state)
{
    (void)state;
    fx_arena arena;
    fx_arena_init(&arena);
    assert_null(fx_arena_alloc(&arena, SIZE_MAX));
    assert_null(fx_arena_calloc(&arena, SIZE_MAX / 2, 3));
    assert_null(fx_arena_alloc(&arena, SIZE_MAX - 20));
    fx_arena_clear(&arena);
}

static void an_adopted_arena_keeps_its_blocks(void **state)
{
    (void)state;
    fx_arena into, from;
    fx_arena_init(&into);
    fx_arena_init(&from);
    fx_arena_adopt(&into, &from); /* empty into empty */
    char *first = fx_arena_strdup(&from, "first");
    fx_arena_adopt(&into, &from);
    char *second = fx_arena_strdup(&from, "second");
    assert_non_null(fx_arena_alloc(&from, 1000000));
    fx_arena_adopt(&into, &from);
    assert_null(from.chunk);
    assert_non_null(fx_arena_strdup(&into, "third"));
    assert_string_equal(first, "first");
    assert_string_equal(second, "second");
    fx_arena_clear(&into);
}

static void a_reset_arena_gives_the_memory_again(void **state)
{
    (void)state;
    fx_arena arena, other;
    fx_arena_init(&arena);
    for (int turn = 0; turn < 3; turn++) {
        for (unsigned i = 0; i < 100; i++) { /* several chunks */
            unsigned char *block = fx_arena_calloc(&arena, 10, 1000);
            assert_non_null(block);
            assert_int_equal(block[0] | block[9999], 0);
            memset(block, 0xAB, 10000);
        }
        assert_non_null(fx_arena_alloc(&arena, 1000000));
        fx_arena_reset(&arena);
        assert_null(arena.chunk);
    }
#ifndef __SANITIZE_ADDRESS__
    fx_memory_fail_after(0); /* enough memory */
    assert_non_null(fx_arena_alloc(&arena, 10000));
    fx_memory_fail_after(-1);
#endif
    fx_arena_init(&other);
    assert_non_null(fx_arena_strdup(&other, "other"));
    fx_arena_reset(&other);
    fx_arena_adopt(&other, &arena); /* leak checkers report lost memory */
    assert_null(arena.spare);
    fx_arena_clear(&other);
}

static void a_failing_allocator_gives_null(void **state)
{
    (void)state;
    fx_arena arena;
    fx_arena_init(&arena);
    fx_memory_fail_after(0);
    assert_null(fx_arena_strdup(&arena, "x"));
    fx_memory_fail_after(0);
    assert_null(fx_arena_alloc(&arena, 1000000));
    fx_memory_fail_after(-1);
    assert_non_null(fx_arena_calloc(&arena, 4, 4));
    fx_arena_clear(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_aligned_and_apart),
        cmocka_unit_test(large_blocks_leave_the_small_chunk_in_use),
        cmocka_unit_test(sizes_that_overflow_are_refused),
        cmocka_unit_test(an_adopted_arena_keeps_its_blocks),
        cmocka_unit_test(a_reset_arena_gives_the_memory_again),
        cmocka_unit_test(a_failing_allocator_gives_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
