/* Kernels' tests on the emulator: the plan, in every order of its threads. */
#include "doubles/emulator.h"
#include "kernel_case.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static enum plim_status emulate(void *user, const struct plim_cuda_launch *launch)
{
    struct kernel_case *c = user;
    const struct emulated_kernel *kernel = emulated_kernel_find(launch->kernel);
    cr_assert(kernel != NULL, "no kernel %s", launch->kernel);
    cr_assert(kernel->args_bytes == launch->args_bytes, "arguments of %s", launch->kernel);
    emulated_kernel_run(kernel, launch->grid, launch->block, launch->shared_bytes, launch->args);
    c->launches++;
    c->kernel = kernel->name;
    return PLIM_OK;
}

/* A sanitizer looks at addresses, which are the same in every order. */
#ifdef PLIM_SANITIZED
enum { ORDERS = 1 };
#else
enum { ORDERS = 3 };
#endif

bool kernel_case_has(int compute_capability)
{
    (void)compute_capability;
    return true;
}

enum kernel_case_way kernel_case_launch(struct kernel_case *c, const struct plim_op *op, int way)
{
    static const char *const orders[] = {"forward", "backward", "shuffled"};
    if (way == ORDERS) return KERNEL_CASE_NO_WAY;
    setenv("PLIM_EMULATOR_ORDER", orders[way], 1);
    c->launches = 0;
    enum plim_status st = plim_cuda_plan(&c->info, op, emulate, c);
    cr_assert(st == PLIM_OK, "plan of %s: %s", plim_op_name(op->kind), plim_status_text(st));
    return way == 0 ? KERNEL_CASE_ANOTHER : KERNEL_CASE_AGAIN;
}
