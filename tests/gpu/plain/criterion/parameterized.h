/* Memory of a test's parameters: there is one process here. */
#include <criterion/criterion.h>
#define cr_malloc malloc
#define cr_free free
