/* Criterion's comparisons: criterion.h here has them all. */
#include <criterion/criterion.h>
