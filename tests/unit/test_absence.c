/* Why there is no GPU, read from made-up machines. */
#include "devices/nvml/absence.h"

#include "support/fake_root.h"
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

enum { NO_LIBRARY = 12, NO_DRIVER = 9, MISMATCH = 18 };

static struct fake_root root;

static void set_up(void)
{
    root = fake_root_create();
}

static void tear_down(void)
{
    fake_root_remove(&root);
}

TestSuite(absence, .init = set_up, .fini = tear_down);

static void expect_says(int code, const char *first, const char *second)
{
    struct plim_absence absence;
    struct plim_error nvml = {.status = PLIM_NODEVICE, .text = "what NVML said"};
    struct plim_error err = PLIM_ERROR_INIT;
    plim_absence_read(root.path, &absence);
    cr_expect(eq(int, plim_absence_explain(&absence, code, &nvml, &err), PLIM_NODEVICE));
    cr_expect(strstr(err.text, first) != NULL, "'%s' is missing in: %s", first, err.text);
    cr_expect(strstr(err.text, second) != NULL, "'%s' is missing in: %s", second, err.text);
}

Test(absence, nothing_of_nvidias_is_here)
{
    fake_root_write(&root, "/sys/bus/pci/devices/0000:00:02.0/vendor", "0x8086\n");
    fake_root_write(&root, "/sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n");
    expect_says(NO_LIBRARY, "no NVIDIA GPU", "no device of vendor 0x10de in /sys/bus/pci/devices");
}

Test(absence, the_bus_cannot_be_read)
{
    expect_says(NO_LIBRARY, "no NVIDIA GPU", "/sys/bus/pci/devices cannot be read");
}

Test(absence, without_memory_to_look_nothing_is_told_of_the_machine)
{
    const struct plim_absence absence = {.no_memory = true};
    const struct plim_error nvml = {.status = PLIM_NODEVICE, .text = "what NVML said"};
    struct plim_error err = PLIM_ERROR_INIT;
    cr_expect(eq(int, plim_absence_explain(&absence, NO_LIBRARY, &nvml, &err), PLIM_NOMEM));
}

Test(absence, sound_of_a_gpu_is_no_gpu)
{
    fake_root_write(&root, "/sys/bus/pci/devices/0000:01:00.1/vendor", "0x10de\n");
    fake_root_write(&root, "/sys/bus/pci/devices/0000:01:00.1/class", "0x040300\n");
    expect_says(NO_LIBRARY, "no NVIDIA GPU", "vendor 0x10de");
}

Test(absence, a_gpu_without_a_driver)
{
    fake_root_gpu(&root, "0000:41:00.0", NULL);
    fake_root_gpu(&root, "0000:01:00.0", NULL);
    expect_says(NO_DRIVER, "NVIDIA GPU at PCI 0000:01:00.0", "modprobe nvidia");
}

Test(absence, a_gpu_that_another_driver_has)
{
    fake_root_gpu(&root, "0000:01:00.0", "nouveau");
    expect_says(NO_LIBRARY, "0000:01:00.0 is driven by nouveau", "install NVIDIA's driver");
}

Test(absence, a_gpu_of_a_driver_that_is_not_up_yet)
{
    fake_root_gpu(&root, "0000:01:00.0", "nvidia");
    expect_says(NO_DRIVER, "no driver is loaded", "modprobe");
}

Test(absence, a_driver_without_device_nodes)
{
    fake_root_driver(&root, "580.65.06");
    expect_says(NO_DRIVER, "driver 580.65.06 is loaded, but there is no /dev/nvidiactl",
                "ask the scheduler");
}

Test(absence, a_container_without_device_nodes)
{
    fake_root_driver(&root, "580.65.06");
    fake_root_write(&root, "/.dockerenv", "");
    expect_says(NO_LIBRARY, "no /dev/nvidiactl", "--gpus all");
}

Test(absence, a_driver_without_its_library)
{
    fake_root_driver(&root, "580.65.06");
    fake_root_write(&root, "/dev/nvidiactl", "");
    fake_root_write(&root, "/proc/driver/nvidia/gpus/0000:01:00.0/information", "");
    expect_says(NO_LIBRARY, "NVIDIA driver 580.65.06", "has 1 GPU, but what NVML said");
}

Test(absence, a_version_that_is_not_understood_is_still_a_driver)
{
    fake_root_write(&root, "/proc/driver/nvidia/version", "something new\n");
    expect_says(NO_LIBRARY, "of unknown version", "no /dev/nvidiactl");
}

Test(absence, what_nvml_says_of_itself_stands)
{
    fake_root_driver(&root, "580.65.06");
    expect_says(MISMATCH, "NVIDIA driver 580.65.06", "what NVML said");
}

Test(absence, what_nvml_says_stands_where_the_system_shows_nothing)
{
    struct plim_absence absence;
    struct plim_error nvml = {.status = PLIM_INTERNAL, .text = "what NVML said"};
    struct plim_error err = PLIM_ERROR_INIT;
    plim_absence_read(root.path, &absence);
    cr_expect(eq(int, plim_absence_explain(&absence, MISMATCH, &nvml, &err), PLIM_INTERNAL));
    cr_expect(eq(str, err.text, (char *)"what NVML said"));
}

Test(absence, windows_without_a_gpu)
{
    fake_root_write(&root, "/proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2\n");
    expect_says(NO_LIBRARY, "no GPU in this WSL", "wsl --update");
}

Test(absence, windows_without_the_driver)
{
    fake_root_write(&root, "/proc/sys/kernel/osrelease", "4.4.0-19041-Microsoft\n");
    fake_root_write(&root, "/dev/dxg", "");
    expect_says(NO_LIBRARY, "/usr/lib/wsl/lib/libnvidia-ml.so.1", "in Windows, not in Linux");
}

Test(absence, windows_where_all_is_there)
{
    fake_root_write(&root, "/proc/sys/kernel/osrelease", "5.15.167.4-microsoft-standard-WSL2\n");
    fake_root_write(&root, "/dev/dxg", "");
    fake_root_write(&root, "/usr/lib/wsl/lib/libnvidia-ml.so.1", "");
    expect_says(NO_DRIVER, "what NVML said", "");
}

Test(absence, gpus_of_the_driver_are_counted)
{
    struct plim_absence absence;
    fake_root_driver(&root, "535.54");
    fake_root_write(&root, "/proc/driver/nvidia/gpus/0000:01:00.0/information", "");
    fake_root_write(&root, "/proc/driver/nvidia/gpus/0000:02:00.0/information", "");
    plim_absence_read(root.path, &absence);
    cr_expect(eq(int, absence.driver_gpus, 2));
    cr_expect(eq(str, absence.driver_version, (char *)"535.54"));
}
