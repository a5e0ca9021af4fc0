/* Loaded before libc: flushing a file fails once the file named in FSYNC_FAILS_WITH exists, as on a disk that is broken. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int flush(const char *name, int fd) {
  const char *file = getenv("FSYNC_FAILS_WITH");
  if (file != NULL && access(file, F_OK) == 0) {
    errno = EIO;
    return -1;
  }
  return ((int (*)(int))dlsym(RTLD_NEXT, name))(fd);
}

int fsync(int fd) { return flush("fsync", fd); }
int fdatasync(int fd) { return flush("fdatasync", fd); }
