/*
 * Loaded before libc: a disk that is broken once the file DISK_FAILS_WITH exists. Its text names what
 * fails: "flush", "write", or "room" as on a disk that is full. With DISK_FAILS_UNDER only files under that path are on it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_on_disk(int fd) {
  const char *under = getenv("DISK_FAILS_UNDER");
  char link[32], path[4096] = "";
  if (under == NULL) return 1;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  return readlink(link, path, sizeof path - 1) > 0 && strncmp(path, under, strlen(under)) == 0;
}

static int fails(int target, const char *what, int error) {
  const char *file = getenv("DISK_FAILS_WITH");
  char text[16] = "";
  int fd = file == NULL ? -1 : open(file, O_RDONLY);
  if (fd < 0) return 0;
  if (read(fd, text, sizeof text - 1) < 0) text[0] = 0;
  close(fd);
  if (strcmp(text, what) != 0 || !is_on_disk(target)) return 0;
  errno = error;
  return 1;
}

static int flush(const char *name, int fd) {
  return fails(fd, "flush", EIO) ? -1 : ((int (*)(int))dlsym(RTLD_NEXT, name))(fd);
}

int fsync(int fd) { return flush("fsync", fd); }
int fdatasync(int fd) { return flush("fdatasync", fd); }

/* SQLite writes its files with this, and nothing else does. */
ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) {
  if (fails(fd, "write", EIO) || fails(fd, "room", ENOSPC)) return -1;
  return ((ssize_t (*)(int, const void *, size_t, off64_t))dlsym(RTLD_NEXT, "pwrite64"))(fd, bytes, count, at);
}
