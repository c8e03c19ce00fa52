/* A folder that stands for "/" of some machine. */
#ifndef PLIM_TESTS_SUPPORT_FAKE_ROOT_H
#define PLIM_TESTS_SUPPORT_FAKE_ROOT_H

struct fake_root {
    char path[64];
};

struct fake_root fake_root_create(void); /* empty; the program ends if it cannot be made */
void fake_root_remove(struct fake_root *root);

/* A file with this text; its folders are made. `path` begins with '/'. */
void fake_root_write(const struct fake_root *root, const char *path, const char *text);
void fake_root_link(const struct fake_root *root, const char *path, const char *target);

/* /proc/driver/nvidia as of this driver. */
void fake_root_driver(const struct fake_root *root, const char *version);
/* A GPU in /sys/bus/pci at "0000:01:00.0", driven by `driver` (NULL: by nothing). */
void fake_root_gpu(const struct fake_root *root, const char *bus_id, const char *driver);

#endif
