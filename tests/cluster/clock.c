/* A machine's own wall clock, for processes that load this library before others (LD_PRELOAD).

   The file that WEIR_CLOCK names holds eight bytes: by how many nanoseconds this clock is ahead of
   the real one. Whoever changes them lets the clock jump, in processes that run too. Other clocks
   are left alone, as they are when a machine's clock is set; waits until a time of day are
   translated, so that they end when that clock says so. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define IS_WALL(clock) ((clock) == CLOCK_REALTIME || (clock) == CLOCK_REALTIME_COARSE)

static const int64_t none = 0;
static volatile const int64_t *ahead = &none;
static __typeof__(&clock_gettime) real_gettime;

__attribute__((constructor)) static void begin(void) {
  real_gettime = REAL(clock_gettime);
  const char *path = getenv("WEIR_CLOCK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *seen = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (seen != MAP_FAILED) ahead = seen;
  close(file);
}

static struct timespec moved(struct timespec at, int64_t by) {
  int64_t all = at.tv_sec * SECOND + at.tv_nsec + by;
  return (struct timespec){all / SECOND, all % SECOND};
}

/* Translate a time of this clock to one of the real clock. */
static struct timespec real(const struct timespec *at) { return moved(*at, -*ahead); }

int clock_gettime(clockid_t clock, struct timespec *at) {
  if (!real_gettime) real_gettime = REAL(clock_gettime);
  int failed = real_gettime(clock, at);
  if (!failed && IS_WALL(clock)) *at = moved(*at, *ahead);
  return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  struct timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
  *at = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *at, struct timespec *left) {
  if (!IS_WALL(clock) || !(flags & TIMER_ABSTIME))
    return REAL(clock_nanosleep)(clock, flags, at, left);
  struct timespec until = real(at);
  return REAL(clock_nanosleep)(clock, flags, &until, left);
}

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict at) {
  int is_wall = !(cond->__data.__wrefs & 2); /* glibc keeps the clock of a condition there */
  struct timespec until = is_wall ? real(at) : *at;
  return REAL(pthread_cond_timedwait)(cond, mutex, &until);
}

int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                           const struct timespec *at) {
  struct timespec until = IS_WALL(clock) ? real(at) : *at;
  return REAL(pthread_cond_clockwait)(cond, mutex, clock, &until);
}

int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict at) {
  struct timespec until = real(at);
  return REAL(pthread_mutex_timedlock)(mutex, &until);
}

int sem_timedwait(sem_t *restrict sem, const struct timespec *restrict at) {
  struct timespec until = real(at);
  return REAL(sem_timedwait)(sem, &until);
}

int sem_clockwait(sem_t *restrict sem, clockid_t clock, const struct timespec *restrict at) {
  struct timespec until = IS_WALL(clock) ? real(at) : *at;
  return REAL(sem_clockwait)(sem, clock, &until);
}

/* Some libraries (Abseil, below gRPC) wait by the system call itself. */
long syscall(long number, ...) {
  va_list given;
  long a[6];
  va_start(given, number);
  for (int i = 0; i < 6; i++) a[i] = va_arg(given, long);
  va_end(given);
  struct timespec until;
  if (number == SYS_futex && (a[1] & FUTEX_CLOCK_REALTIME) && a[3]) {
    until = real((const struct timespec *)a[3]);
    a[3] = (long)&until;
  }
  return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
