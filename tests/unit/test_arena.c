#include "autotune/base/arena.h"
#include "autotune/base/array.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdalign.h>
#include <stddef.h>

Test(arena, memory_is_zeroed_aligned_and_apart)
{
    struct plim_arena arena = {0};
    unsigned char *previous = NULL;
    for (size_t size = 1; size < 3000; size += 7) {
        unsigned char *memory = plim_arena_alloc(&arena, size);
        cr_assert(ne(ptr, memory, NULL));
        cr_expect(eq(sz, (size_t)memory % alignof(max_align_t), 0));
        for (size_t i = 0; i < size; i++) cr_assert(eq(u8, memory[i], 0));
        memset(memory, 0xab, size);
        if (previous) cr_expect(eq(u8, *previous, 0xab));
        previous = memory;
    }
    plim_arena_finish(&arena);
}

Test(arena, an_allocation_larger_than_a_block_works)
{
    struct plim_arena arena = {0};
    char *small = plim_arena_text(&arena, "kept", 4);
    unsigned char *large = plim_arena_alloc(&arena, 5 << 20);
    cr_assert(ne(ptr, large, NULL));
    large[(5 << 20) - 1] = 1;
    cr_expect(eq(str, small, "kept"));
    plim_arena_finish(&arena);
}

Test(arena, a_size_of_zero_gives_distinct_pointers)
{
    struct plim_arena arena = {0};
    void *a = plim_arena_alloc(&arena, 0), *b = plim_arena_alloc(&arena, 0);
    cr_expect(ne(ptr, a, NULL));
    cr_expect(ne(ptr, a, b));
    plim_arena_finish(&arena);
}

Test(arena, what_cannot_be_is_null_and_harmless)
{
    struct plim_arena arena = {0};
    cr_expect(eq(ptr, plim_arena_alloc(&arena, SIZE_MAX), NULL));
    cr_expect(eq(ptr, plim_arena_alloc(&arena, SIZE_MAX - 64), NULL));
    cr_expect(eq(ptr, plim_arena_array(&arena, SIZE_MAX / 2, 3), NULL));
    cr_expect(eq(ptr, plim_arena_text(&arena, "x", SIZE_MAX), NULL));
    cr_expect(eq(sz, arena.used_bytes, 0));
    plim_arena_finish(&arena);
}

Test(arena, text_is_copied_and_terminated)
{
    struct plim_arena arena = {0};
    char source[] = "abcdef";
    char *copy = plim_arena_text(&arena, source, 3);
    source[0] = 'z';
    cr_expect(eq(str, copy, "abc"));
    cr_expect(eq(str, plim_arena_text(&arena, NULL, 0), ""));
    plim_arena_finish(&arena);
}

Test(arena, finish_of_null_and_empty_is_fine)
{
    struct plim_arena arena = {0};
    plim_arena_finish(NULL);
    plim_arena_finish(&arena);
    cr_expect(eq(ptr, arena.head, NULL));
}

Test(array, pushes_grow_and_keep_the_items)
{
    struct {
        PLIM_ARRAY(int) numbers;
    } holder = {0};
    for (int i = 0; i < 1000; i++)
        cr_assert(eq(int, PLIM_ARRAY_PUSH(&holder.numbers, i * i), PLIM_OK));
    cr_expect(eq(sz, holder.numbers.count, 1000));
    for (int i = 0; i < 1000; i++) cr_assert(eq(int, holder.numbers.items[i], i *i));
    PLIM_ARRAY_FINISH(&holder.numbers);
    cr_expect(eq(ptr, holder.numbers.items, NULL));
    cr_expect(eq(sz, holder.numbers.capacity, 0));
}

Test(array, an_impossible_size_leaves_the_array_as_it_was)
{
    PLIM_ARRAY(double) values = {0};
    cr_assert(eq(int, PLIM_ARRAY_PUSH(&values, 1.5), PLIM_OK));
    cr_expect(eq(int, PLIM_ARRAY_RESERVE(&values, SIZE_MAX), PLIM_NOMEM));
    cr_expect(eq(int, PLIM_ARRAY_RESERVE(&values, SIZE_MAX / 4), PLIM_NOMEM));
    cr_expect(eq(sz, values.count, 1));
    cr_expect(eq(dbl, values.items[0], 1.5));
    PLIM_ARRAY_FINISH(&values);
}
