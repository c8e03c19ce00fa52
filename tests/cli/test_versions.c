/* What --version says of the driver, which may be absent, old, or something else. */
#include "program.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdlib.h>
#include <string.h>

static void expect_version(const char *says)
{
    struct program p = program_run("--version");
    cr_expect(eq(int, p.exit_code, 0));
    cr_expect(eq(str, p.err, (char *)""));
    cr_expect(eq(int, strncmp(p.out, "plimsoll 0.", 11), 0));
    cr_expect(strstr(p.out, says) != NULL, "'%s' is missing in:\n%s", says, p.out);
    program_finish(&p);
}

Test(versions, the_driver_is_told)
{
    setenv("LD_LIBRARY_PATH", PLIM_DOUBLES_FOLDER, 1);
    setenv("PLIM_DOUBLE_DRIVER", "99020", 1);
    expect_version("\ndriver for CUDA 99.2 (libcuda.so.1)\n");
}

Test(versions, a_driver_that_is_too_old_is_told)
{
    setenv("LD_LIBRARY_PATH", PLIM_DOUBLES_FOLDER, 1);
    setenv("PLIM_DOUBLE_DRIVER", "9020", 1);
    expect_version("libcuda.so.1 is a driver for CUDA 9.2 and this plimsoll is built for CUDA ");
    expect_version(": install a newer driver\n");
}

Test(versions, a_driver_without_a_function_is_told)
{
    setenv("LD_LIBRARY_PATH", PLIM_DOUBLES_FOLDER "/lacking", 1);
    expect_version("libcuda.so.1 has no cuDeviceGet, which CUDA ");
}

/* A file that is no library is like no file. */
Test(versions, no_driver_is_told_with_what_helps)
{
    setenv("LD_LIBRARY_PATH", PLIM_DOUBLES_FOLDER "/broken", 1);
    expect_version("no NVIDIA driver: ");
    expect_version("also looked for /usr/lib/wsl/lib/libcuda.so.1; install the driver");
}

Test(versions, libraries_are_told_with_their_place)
{
    setenv("PLIMSOLL_CUDA_PATH", PLIM_DOUBLES_FOLDER, 1);
    expect_version("\ncuBLASLt " PLIM_CUBLAS_MAJOR ".");
    expect_version("(" PLIM_DOUBLES_FOLDER "/libcublasLt.so." PLIM_CUBLAS_MAJOR ")\ncuDNN 9.");
    expect_version("(" PLIM_DOUBLES_FOLDER "/libcudnn.so.9)\n");
}
