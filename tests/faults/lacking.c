/* A file system that lacks operations, for a process that loads this: those named in LACKING, below LACKING_UNDER. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((typeof(&name))dlsym(RTLD_NEXT, #name))

static int lacks(const char *what, int number) {
    const char *all = getenv("LACKING");
    if (all == NULL || strstr(all, what) == NULL) return 0;
    errno = number;
    return 1;
}

static int below(int descriptor) {
    char link[64], path[PATH_MAX];
    const char *folder = getenv("LACKING_UNDER");
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    return folder != NULL && length > 0 && strncmp(path, folder, strlen(folder)) == 0;
}

static int is_folder(int descriptor) {
    struct stat found;
    return fstat(descriptor, &found) == 0 && S_ISDIR(found.st_mode);
}

int link(const char *from, const char *to) { return lacks("link", EPERM) ? -1 : REAL(link)(from, to); }

int linkat(int one, const char *from, int other, const char *to, int flags) {
    return lacks("link", EPERM) ? -1 : REAL(linkat)(one, from, other, to, flags);
}

int fsync(int descriptor) {
    if (is_folder(descriptor) && below(descriptor) && lacks("fsync", EINVAL)) return -1;
    return REAL(fsync)(descriptor);
}

int flock(int descriptor, int operation) {
    if (below(descriptor) && lacks("flock", EOPNOTSUPP)) return -1;
    if (below(descriptor) && lacks("exclusion", 0)) return 0; /* a lock of another host excludes nobody here */
    return REAL(flock)(descriptor, operation);
}

/* A clock that another process sets back by the seconds in the file CLOCK. */
int clock_gettime(clockid_t clock, struct timespec *now) {
    int status = REAL(clock_gettime)(clock, now);
    const char *name = getenv("CLOCK");
    FILE *file = clock == CLOCK_REALTIME && name != NULL ? fopen(name, "r") : NULL;
    long back = 0;
    if (file != NULL) {
        if (fscanf(file, "%ld", &back) == 1) now->tv_sec -= back;
        fclose(file);
    }
    return status;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result != NULL) *result = now.tv_sec;
    return now.tv_sec;
}
