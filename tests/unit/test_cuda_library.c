/* Finding libraries, with the stand-ins of tests/doubles instead of NVIDIA's. */
#include "devices/cuda/library.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void use_stand_ins(void)
{
    setenv("PLIMSOLL_CUDA_PATH", PLIM_DOUBLES_FOLDER, 1);
}

static struct plim_cuda_library_spec nowhere = {.name = "cuNothing",
                                                .soname = "libplimsoll-nothing.so.7",
                                                .version_symbol = "nothing",
                                                .help = "there is no help"};

Test(library, own_variable_comes_first, .init = use_stand_ins)
{
    struct plim_cuda_library library;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, plim_cuda_library_open(&plim_cuda_library_cudnn, &library, &err), PLIM_OK),
              "%s", err.text);
    cr_expect(eq(str, library.path, PLIM_DOUBLES_FOLDER "/libcudnn.so.9"));
    cr_expect(ge(sz, library.version, (size_t)91002));
    plim_cuda_library_close(&library);
}

Test(library, lib_below_a_variable_is_searched)
{
    char folder[] = "/tmp/plimsoll-library-XXXXXX", lib[64], file[96];
    cr_assert(ne(ptr, mkdtemp(folder), NULL));
    snprintf(lib, sizeof lib, "%s/lib64", folder);
    snprintf(file, sizeof file, "%s/lib64/libcudnn.so.9", folder);
    char command[512];
    snprintf(command, sizeof command, "mkdir %s && ln -s '%s/libcudnn.so.9' %s", lib,
             PLIM_DOUBLES_FOLDER, file);
    cr_assert(eq(int, system(command), 0));
    unsetenv("PLIMSOLL_CUDA_PATH");
    setenv("CUDNN_PATH", folder, 1);
    struct plim_cuda_library library;
    enum plim_status st = plim_cuda_library_open(&plim_cuda_library_cudnn, &library, NULL);
    cr_expect(eq(int, st, PLIM_OK));
    /* The superuser's is the file that was checked, not the link to it. */
    const char *expected = geteuid() ? file : PLIM_DOUBLES_FOLDER "/libcudnn.so.9";
    cr_expect(eq(str, library.path, (char *)expected));
    plim_cuda_library_close(&library);
    unlink(file);
    rmdir(lib);
    rmdir(folder);
}

/* A copy of a stand-in in a folder of the test's own, and the library loaded from there. */
static char copied[] = "/tmp/plimsoll-library-XXXXXX";

static void copy_stand_in(void)
{
    char command[512];
    cr_assert(ne(ptr, mkdtemp(copied), NULL));
    snprintf(command, sizeof command, "cp '%s/libcudnn.so.9' %s", PLIM_DOUBLES_FOLDER, copied);
    cr_assert(eq(int, system(command), 0));
    static const char *const variables[] = {"CUDNN_PATH", "CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV",
                                            "CONDA_PREFIX", "LD_LIBRARY_PATH"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
    setenv("PLIMSOLL_CUDA_PATH", copied, 1);
}

static void remove_copy(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", copied);
    cr_expect(eq(int, system(command), 0));
}

/* Is the library of the copy loaded? Where it is not, another one may be. */
static bool loads_copy(struct plim_error *err)
{
    struct plim_cuda_library library;
    bool opened = plim_cuda_library_open(&plim_cuda_library_cudnn, &library, err) == PLIM_OK;
    bool is_copy = opened && !strncmp(library.path, copied, strlen(copied));
    if (opened) plim_cuda_library_close(&library);
    return is_copy;
}

Test(library, a_relative_place_counts_as_not_set, .init = copy_stand_in, .fini = remove_copy)
{
    cr_expect(eq(int, loads_copy(NULL), 1));
    cr_assert(eq(int, chdir("/tmp"), 0));
    setenv("PLIMSOLL_CUDA_PATH", copied + strlen("/tmp/"), 1);
    cr_expect(eq(int, loads_copy(NULL), 0));
}

Test(library, the_superuser_loads_nothing_that_others_can_change, .init = copy_stand_in,
     .fini = remove_copy)
{
    char file[96];
    if (geteuid()) return;
    snprintf(file, sizeof file, "%s/libcudnn.so.9", copied);
    cr_assert(eq(int, chown(file, 65534, 65534), 0));
    cr_expect(eq(int, loads_copy(NULL), 0), "another's file");
    cr_assert(eq(int, chown(file, 0, 0), 0));
    cr_assert(eq(int, chown(copied, 65534, 65534), 0));
    cr_expect(eq(int, loads_copy(NULL), 0), "another's folder");
    cr_assert(eq(int, chown(copied, 0, 0), 0));
    cr_assert(eq(int, chmod(copied, 0777), 0));
    cr_expect(eq(int, loads_copy(NULL), 0), "a folder that others may write to");
    cr_assert(eq(int, chmod(copied, 0755), 0));
    cr_expect(eq(int, loads_copy(NULL), 1));
}

Test(library, missing_one_is_explained_in_one_line)
{
    struct plim_cuda_library library;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, plim_cuda_library_open(&nowhere, &library, &err), PLIM_NODEVICE));
    cr_expect(strstr(err.text, "libplimsoll-nothing.so.7") != NULL, "%s", err.text);
    cr_expect(strstr(err.text, "PLIMSOLL_CUDA_PATH") != NULL, "%s", err.text);
    cr_expect(strstr(err.text, "there is no help") != NULL, "%s", err.text);
    cr_expect(strchr(err.text, '\n') == NULL);
    plim_cuda_library_close(&library);
}

Test(library, old_one_is_refused_with_its_version, .init = use_stand_ins)
{
    struct plim_cuda_library_spec demanding = plim_cuda_library_cudnn;
    demanding.least_version = 990000;
    struct plim_cuda_library library;
    struct plim_error err = PLIM_ERROR_INIT;
    cr_assert(eq(int, plim_cuda_library_open(&demanding, &library, &err), PLIM_NODEVICE));
    cr_expect(strstr(err.text, "expected 99.0.0 or newer") != NULL, "%s", err.text);
    cr_expect(eq(ptr, library.handle, NULL));
}

Test(library, missing_function_is_named, .init = use_stand_ins)
{
    struct plim_cuda_library library;
    struct plim_error err = PLIM_ERROR_INIT;
    void *function;
    const struct plim_cuda_library_symbol symbol = {"cudnnDoesNotExist", 0};
    cr_assert(eq(int, plim_cuda_library_open(&plim_cuda_library_cudnn, &library, NULL), PLIM_OK));
    cr_expect(
        eq(int, plim_cuda_library_resolve(&library, &symbol, 1, &function, &err), PLIM_NODEVICE));
    cr_expect(strstr(err.text, "cudnnDoesNotExist") != NULL, "%s", err.text);
    plim_cuda_library_close(&library);
}

Test(library, text_has_version_and_path, .init = use_stand_ins)
{
    char text[256];
    plim_cuda_library_text(&plim_cuda_library_cublaslt, text, sizeof text);
    char begin[32], path[512];
    const struct plim_cuda_library_spec *blas = &plim_cuda_library_cublaslt;
    snprintf(begin, sizeof begin, "cuBLASLt %zu.", blas->least_version / 10000);
    snprintf(path, sizeof path, "(" PLIM_DOUBLES_FOLDER "/%s)", blas->soname);
    cr_expect(strncmp(text, begin, strlen(begin)) == 0, "%s", text);
    cr_expect(strstr(text, path) != NULL, "%s", text);
    plim_cuda_library_text(&nowhere, text, sizeof text);
    cr_expect(strncmp(text, "cuNothing: none: ", 17) == 0, "%s", text);
}
