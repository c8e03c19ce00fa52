/* Leaks on purpose. Built into the sanitized tests only, where it is expected to fail. */
#include <criterion/criterion.h>
#include <stdlib.h>

static void *volatile held;

Test(leak, is_noticed)
{
    held = malloc(1000);
    held = NULL;
}
